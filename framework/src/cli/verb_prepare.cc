#include "cli/recipe_options.h"
#include "cli/verbs.h"
#include "report/numbers.h"
#include "train/data_folder.h"
#include "train/drawn_windows.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace tally::cli {
namespace {

struct PrepareOptions {
  RecipeOptions recipe;
  std::string file;
};

int run(const PrepareOptions& options, const Terminal& terminal) {
  train::Job job = options.recipe.assemble(recipe_or_shipped(options.file, "correct"));
  const checkpoint::DataLock lock = train::prepare_data(job);
  const train::DrawnWindows drawn = train::draw_windows(job, job.settings.updates);
  const auto file = job.settings.data_folder / "windows.jsonl";
  train::write_windows(drawn, file);
  nlohmann::json files = nlohmann::json::array();
  for (const checkpoint::FileEntry& entry : lock.files()) {
    files.push_back({{"name", entry.name}, {"bytes", entry.size}, {"sha256", entry.digest.hex()}});
    terminal.line(fmt::format("{}/{}: {} bytes, SHA-256 {}", job.settings.data_folder.string(),
                              entry.name, report::grouped(entry.size), entry.digest.hex()));
  }
  terminal.line(fmt::format("{}: {} windows, chain {}", file.string(), drawn.plans.size(),
                            drawn.chain.hex()));
  terminal.document(
      {{"files", files}, {"windows", drawn.plans.size()}, {"chain", drawn.chain.hex()}});
  return 0;
}

}  // namespace

RunVerb declare_prepare(Arguments arguments) {
  auto options = std::make_shared<PrepareOptions>();
  arguments.optional_file("recipe", options->file, "Recipe file; recipes/correct.toml by default");
  options->recipe.declare(arguments);
  return [options](const Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::cli
