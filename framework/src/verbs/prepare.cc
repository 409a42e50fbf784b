#include "cli/recipe_options.h"
#include "report/numbers.h"
#include "run/data_folder.h"
#include "run/drawn_windows.h"
#include "verbs/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace tally::verbs {
namespace {

struct PrepareOptions {
  cli::RecipeOptions recipe;
  std::string file;
};

int run(const PrepareOptions& options, const cli::Terminal& terminal) {
  run::Job job = options.recipe.assemble(cli::recipe_or_shipped(options.file, "correct"));
  const checkpoint::DataLock lock = run::prepare_data(job);
  const run::DrawnWindows drawn = run::draw_windows(job, job.settings.updates);
  const auto file = run::windows_file(job.settings.data_folder);
  run::write_windows(drawn, file);
  nlohmann::json files = nlohmann::json::array();
  for (const files::FileEntry& entry : lock.files()) {
    files.push_back({{"name", entry.name}, {"bytes", entry.size}, {"sha256", entry.digest.hex()}});
    terminal.line(fmt::format("{}/{}: {} bytes, SHA-256 {}", job.settings.data_folder.string(),
                              entry.name, report::grouped(entry.size), entry.digest.hex()));
  }
  terminal.line(fmt::format("{}: {}, chain {}", file.string(),
                            report::counted(static_cast<int64_t>(drawn.plans.size()), "window"),
                            drawn.chain.hex()));
  terminal.document(
      {{"files", files}, {"windows", drawn.plans.size()}, {"chain", drawn.chain.hex()}});
  return 0;
}

}  // namespace

cli::RunVerb declare_prepare(cli::Arguments arguments) {
  auto options = std::make_shared<PrepareOptions>();
  arguments.optional_file("recipe", options->file, "Recipe file; recipes/correct.toml by default");
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
