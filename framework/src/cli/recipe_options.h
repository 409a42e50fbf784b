#pragma once

#include "cli/arguments.h"
#include "recipe/recipe.h"
#include "run/job.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tally::cli {

/// The options of every verb that reads a recipe: -c, --set, --ranks, --data, --plugin-path.
struct RecipeOptions {
  std::string config;
  std::vector<std::string> sets;
  std::string ranks;
  std::vector<std::string> plugin_path;

  void declare(Arguments arguments);

  /// The recipe as the ranks must see it: with the number of ranks of the run that this process
  /// belongs to, if it is a rank.
  recipe::Recipe load(const std::filesystem::path& file,
                      const std::vector<std::string>& further_sets = {}) const;
  run::Job assemble(const std::filesystem::path& file,
                    const std::vector<std::string>& further_sets = {}) const;

  /// The same without the --sets that no plugin of this recipe knows, for a verb whose options are
  /// for several recipes.
  RecipeOptions known_to(const std::filesystem::path& file) const;

  /// The arguments that give a rank the same values.
  std::vector<std::string> arguments(const std::vector<std::string>& further_sets = {}) const;

 private:
  std::vector<std::filesystem::path> plugin_folders() const;
};

/// "key=value" for a text, whatever it holds.
std::string text_set(const std::string& key, const std::string& text);

/// Where the shipped recipes are: the nearest `recipes` folder at or above the current folder, else
/// the one of the program's own tree.
/// Throws ConfigError when it is in neither.
std::filesystem::path shipped_recipe(const std::string& name);
/// The same for the folder `configs`.
std::filesystem::path shipped_config(const std::string& name);

/// `file`, or the shipped recipe when none was given.
std::filesystem::path recipe_or_shipped(const std::string& file, const std::string& name);

}  // namespace tally::cli
