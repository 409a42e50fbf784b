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
  const auto recipe = cli::recipe_or_shipped(options.file, "reference");
  const files::FolderLocks lock = lock_gradients();
  const int exit_code = launch_gradients(options.recipe, recipe, options.windows);
  if (exit_code != 0) return exit_code;
  const auto file = gradients_file(options.recipe.load(recipe).name());
  const verify::GradientSet set = verify::load_gradients(file);
  int64_t values = 0;
  for (const NamedTensor& gradient : set.windows.front().total) values += gradient.tensor.numel();
  terminal.line(fmt::format(
      "gradient of {} window(s) of '{}' on {} rank over {} shards: {} values each, in {}",
      set.windows.size(), set.recipe, set.world, set.shards, report::grouped(values),
      file.string()));
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
  arguments.optional_file("recipe", options->file,
                          "Recipe file; recipes/reference.toml by default");
  arguments.count("--windows", options->windows, 1, kMaxWindows,
                  "How many windows, from the first");
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
