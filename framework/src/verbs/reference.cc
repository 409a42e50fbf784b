#include "report/numbers.h"
#include "verbs/gradients.h"
#include "verbs/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace tally::verbs {
namespace {

struct ReferenceOptions {
  cli::RecipeOptions recipe;
  std::string file;
  int64_t windows = 1;
};

int run(const ReferenceOptions& options, const cli::Terminal& terminal) {
  const auto recipe = cli::recipe_or_shipped(options.file, "correct");
  const files::FolderLocks lock = lock_gradients();
  const verify::GradientSet set =
      make_reference(options.recipe, recipe, options.windows, /*anew=*/true);
  const auto file = reference_file(set.recipe);
  int64_t values = 0;
  for (const NamedTensor& gradient : set.windows.front().total) values += gradient.tensor.numel();
  terminal.line(fmt::format("gradient of {} of '{}' on one rank over {}: {} values each, in {}",
                            report::counted(static_cast<int64_t>(set.windows.size()), "window"),
                            set.recipe, report::counted(set.shards, "shard"),
                            report::grouped(values), file.string()));
  terminal.document({{"file", file.string()},
                     {"recipe", set.recipe},
                     {"windows", set.windows.size()},
                     {"values", values},
                     {"world", set.world},
                     {"shards", set.shards},
                     {"chain", set.chain.hex()}});
  return 0;
}

}  // namespace

cli::RunVerb declare_reference(cli::Arguments arguments) {
  auto options = std::make_shared<ReferenceOptions>();
  arguments.optional_file("recipe", options->file, "Recipe file; recipes/correct.toml by default");
  arguments.count("--windows", options->windows, 1, kMaxWindows,
                  "How many windows, from the first");
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
