#pragma once

#include "cli/recipe_options.h"

#include <filesystem>
#include <optional>
#include <string>

namespace tally::verbs {

/// The shipped known error, recipes/wrong.toml, shows something only about a recipe that is right
/// in its place: the same examples, model and seed, and the objective of recipes/correct.toml.
/// Returns a sentence with the first difference where `recipe` is another one.
std::optional<std::string> unlike_the_known_error(const cli::RecipeOptions& options,
                                                  const std::filesystem::path& recipe);

}  // namespace tally::verbs
