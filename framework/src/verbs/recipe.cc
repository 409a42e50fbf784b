#include "cli/recipe_options.h"
#include "verbs/verbs.h"

#include <nlohmann/json.hpp>

#include <memory>

namespace tally::verbs {
namespace {

struct ShowOptions {
  cli::RecipeOptions recipe;
  std::string file;
};

int show(const ShowOptions& options, const cli::Terminal& terminal) {
  // The hooks are made, so that the defaults of their options appear too.
  const run::Job job = options.recipe.assemble(options.file);
  terminal.line(job.recipe.with_origins());
  terminal.document({{"name", job.settings.name},
                     {"values", nlohmann::json::parse(job.recipe.with_origins_json())}});
  return 0;
}

}  // namespace

cli::RunVerb declare_recipe(cli::Arguments arguments) {
  auto options = std::make_shared<ShowOptions>();
  cli::Arguments show_verb =
      arguments.subverb("show", "Print every value of a recipe with its origin");
  show_verb.required_file("recipe", options->file, "Recipe file");
  options->recipe.declare(show_verb);
  return [options](const cli::Terminal& terminal) { return show(*options, terminal); };
}

}  // namespace tally::verbs
