#include "report/numbers.h"
#include "report/table.h"
#include "run/data_folder.h"
#include "run/run_folder.h"
#include "verbs/verbs.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

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
  int64_t kept = 0;  ///< Files in it that tally did not make, or that were changed since.
  std::vector<fs::path> parts;  ///< Where something is kept: the files that go.
};

void add_size(const fs::path& file, Entry& entry) {
  ++entry.files;
  if (fs::is_regular_file(fs::symlink_status(file)))
    entry.bytes += static_cast<int64_t>(fs::file_size(file));
}

/// Without the option follow_directory_symlink a linked folder is one entry.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& inner : fs::recursive_directory_iterator(folder))
    if (!fs::is_directory(inner.symlink_status())) files.push_back(inner.path());
  return files;
}

Entry measure(const fs::path& path) {
  Entry entry;
  entry.path = path;
  entry.link = fs::is_symlink(fs::symlink_status(path));
  if (!fs::is_directory(fs::symlink_status(path))) {
    add_size(path, entry);
    return entry;
  }
  for (const fs::path& file : files_in(path)) add_size(file, entry);
  return entry;
}

/// A person's own data lie beside what tally made.
Entry measure_data(const fs::path& folder) {
  if (!fs::is_directory(fs::symlink_status(folder))) return measure(folder);
  Entry entry;
  entry.path = folder;
  entry.parts = run::made_files(folder);
  for (const fs::path& file : entry.parts) add_size(file, entry);
  entry.kept = static_cast<int64_t>(files_in(folder).size()) - entry.files;
  return entry;
}

std::vector<Entry> measure_all(const std::string& scope) {
  std::vector<Entry> entries;
  const auto is_there = [](const fs::path& path) { return fs::exists(fs::symlink_status(path)); };
  for (const fs::path& path : {run::outputs_folder(), fs::path("artifacts")})
    if (is_there(path)) entries.push_back(measure(path));
  if (scope == "all" && is_there("data")) entries.push_back(measure_data("data"));
  return entries;
}

void remove(const Entry& entry) {
  if (entry.kept == 0) {
    fs::remove_all(entry.path);
    return;
  }
  for (const fs::path& file : entry.parts) fs::remove(file);
}

std::string note_on(const Entry& entry) {
  if (entry.link) return "a link; what it points to stays";
  if (entry.kept == 0) return "";
  return fmt::format("without {} that tally did not make", report::counted(entry.kept, "file"));
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
               note_on(entry)});
  }
  terminal.line(table.text(terminal.colour()));
}

int run(const CleanOptions& options, const cli::Terminal& terminal) {
  std::vector<Entry> entries;
  try {
    entries = measure_all(options.scope);
    if (!options.dry_run) {
      for (const Entry& entry : entries) remove(entry);
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
                       {"kept", entry.kept},
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
                   "generated: outputs and artifacts; all: also what tally made in data");
  arguments.flag("--dry-run", options->dry_run, "Only list what would be removed");
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
