#include "report/numbers.h"
#include "report/table.h"
#include "run/run_folder.h"
#include "verbs/verbs.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace tally::verbs {
namespace {

namespace fs = std::filesystem;

struct CleanOptions {
  std::string scope = "generated";
  bool dry_run = false;
};

/// What is to go. A link is only itself: what it points to stays.
struct Entry {
  fs::path path;
  bool link = false;
  int64_t files = 0;
  int64_t bytes = 0;
};

std::vector<fs::path> paths_of(const std::string& scope) {
  std::vector<fs::path> paths{run::outputs_folder(), "artifacts"};
  if (scope == "all") paths.emplace_back("data");
  return paths;
}

void add_size(const fs::path& file, Entry& entry) {
  ++entry.files;
  if (fs::is_regular_file(fs::symlink_status(file)))
    entry.bytes += static_cast<int64_t>(fs::file_size(file));
}

Entry measure(const fs::path& path) {
  Entry entry{.path = path, .link = fs::is_symlink(fs::symlink_status(path))};
  if (!fs::is_directory(fs::symlink_status(path))) {
    add_size(path, entry);
    return entry;
  }
  // Without the option follow_directory_symlink a linked folder is one entry.
  for (const fs::directory_entry& inner : fs::recursive_directory_iterator(path)) {
    if (!fs::is_directory(inner.symlink_status())) add_size(inner.path(), entry);
  }
  return entry;
}

std::vector<Entry> measure_all(const std::string& scope) {
  std::vector<Entry> entries;
  for (const fs::path& path : paths_of(scope)) {
    if (fs::exists(fs::symlink_status(path))) entries.push_back(measure(path));
  }
  return entries;
}

void show(const std::vector<Entry>& entries, bool dry_run, const cli::Terminal& terminal) {
  if (entries.empty()) {
    terminal.line("there is nothing to remove here");
    return;
  }
  using report::Align;
  report::Table table({{dry_run ? "would remove" : "removed"},
                       {"files", Align::kRight},
                       {"size", Align::kRight},
                       {""}});
  for (const Entry& entry : entries) {
    table.row({entry.path.string(), report::grouped(entry.files), report::bytes(entry.bytes),
               entry.link ? "a link; what it points to stays" : ""});
  }
  terminal.line(table.text(terminal.colour()));
}

int run(const CleanOptions& options, const cli::Terminal& terminal) {
  std::vector<Entry> entries;
  try {
    entries = measure_all(options.scope);
    if (!options.dry_run) {
      for (const Entry& entry : entries) fs::remove_all(entry.path);
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(fmt::format("cannot remove {}: {}; check its permissions and its owner",
                                error.path1().string(), error.code().message()));
  }
  nlohmann::json removed = nlohmann::json::array();
  for (const Entry& entry : entries) {
    removed.push_back({{"path", entry.path.string()},
                       {"files", entry.files},
                       {"bytes", entry.bytes},
                       {"link", entry.link}});
  }
  terminal.document({{"scope", options.scope}, {"dry_run", options.dry_run}, {"entries", removed}});
  show(entries, options.dry_run, terminal);
  return 0;
}

}  // namespace

cli::RunVerb declare_clean(cli::Arguments arguments) {
  auto options = std::make_shared<CleanOptions>();
  arguments.choice("--scope", options->scope, {"generated", "all"},
                   "generated: outputs and artifacts; all: also the folder data");
  arguments.flag("--dry-run", options->dry_run, "Only list what would be removed");
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
