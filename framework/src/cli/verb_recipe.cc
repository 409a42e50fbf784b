#include "cli/recipe_options.h"
#include "cli/verbs.h"

#include <nlohmann/json.hpp>

#include <memory>

namespace tally::cli {
namespace {

struct ShowOptions {
  RecipeOptions recipe;
  std::string file;
};

int show(const ShowOptions& options, const Terminal& terminal) {
  // The hooks are made, so that the defaults of their options appear too.
  const train::Job job = options.recipe.assemble(options.file);
  terminal.line(job.recipe.with_origins());
  terminal.document({{"name", job.settings.name},
                     {"values", nlohmann::json::parse(job.recipe.with_origins_json())}});
  return 0;
}

}  // namespace

RunVerb declare_recipe(Arguments arguments) {
  auto options = std::make_shared<ShowOptions>();
  Arguments show_verb = arguments.subverb("show", "Print every value of a recipe with its origin");
  show_verb.required_file("recipe", options->file, "Recipe file");
  options->recipe.declare(show_verb);
  return [options](const Terminal& terminal) { return show(*options, terminal); };
}

}  // namespace tally::cli
