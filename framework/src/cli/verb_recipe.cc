#include "cli/recipe_options.h"
#include "cli/verbs.h"

#include <CLI/CLI.hpp>
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

RunVerb declare_recipe(CLI::App& app) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* sub = app.add_subcommand("show", "Print every value of a recipe with its origin");
  sub->add_option("recipe", options->file, "Recipe file")->required();
  options->recipe.declare(*sub);
  app.require_subcommand(1);
  return [options](const Terminal& terminal) { return show(*options, terminal); };
}

}  // namespace tally::cli
