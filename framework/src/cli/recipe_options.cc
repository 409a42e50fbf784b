#include "cli/recipe_options.h"

#include "distributed/membership.h"
#include "recipe/toml_text.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <algorithm>

namespace tally::cli {

namespace fs = std::filesystem;

namespace {

fs::path shipped_file(const fs::path& file) {
  std::error_code error;
  fs::path up;
  for (int level = 0; level < 16; ++level, up /= "..") {
    if (fs::exists(up / file, error)) return up / file;
  }
  // build/PRESET/bin/tally lies three folders below the tree, an installed program beside
  // share/tally.
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& root : {program / "../../..", program / "../share/tally"}) {
    if (fs::exists(root / file, error)) return (root / file).lexically_normal();
  }
  throw ConfigError(
      fmt::format("{} was not found here or above, nor beside the program; run inside the source "
                  "tree, or name a file",
                  file.string()));
}

}  // namespace

void RecipeOptions::declare(Arguments arguments) {
  arguments.text("-c,--config", config, "Config file instead of the one that the recipe names");
  arguments.texts("--set", sets, "KEY=VALUE: beats recipe and config; may be repeated");
  arguments.count("--ranks", ranks, 1, run::kMaxRanks, "Number of ranks: beats run.ranks");
  arguments.texts("--plugin-path", plugin_path,
                  "Folder to search for plugins first; may be repeated");
}

recipe::Recipe RecipeOptions::load(const fs::path& file,
                                   const std::vector<std::string>& further_sets) const {
  recipe::Sources sources;
  sources.recipe = file;
  if (!config.empty()) sources.config = config;
  sources.sets = sets;
  sources.sets.insert(sources.sets.end(), further_sets.begin(), further_sets.end());
  if (!ranks.empty()) sources.options.push_back({"--ranks", "run.ranks=" + ranks});
  if (const auto self = distributed::membership_from_environment()) {
    sources.options.push_back({"the launcher", fmt::format("run.ranks={}", self->world)});
  }
  return recipe::Recipe::load(sources);
}

run::Job RecipeOptions::assemble(const fs::path& file,
                                 const std::vector<std::string>& further_sets) const {
  return run::assemble(load(file, further_sets), plugin_folders());
}

RecipeOptions RecipeOptions::known_to(const fs::path& file) const {
  const std::vector<std::string> unknown = run::unknown_sets(load(file), plugin_folders());
  RecipeOptions result = *this;
  std::erase_if(result.sets, [&](const std::string& set) {
    return std::any_of(unknown.begin(), unknown.end(), [&](const std::string& key) {
      return set.starts_with(key + "=") || set.starts_with(key + ".");
    });
  });
  return result;
}

std::vector<std::string> RecipeOptions::arguments(
    const std::vector<std::string>& further_sets) const {
  std::vector<std::string> result;
  const auto add = [&](const char* option, const std::string& value) {
    result.emplace_back(option);
    result.push_back(value);
  };
  if (!config.empty()) add("--config", config);
  for (const std::string& set : sets) add("--set", set);
  for (const std::string& set : further_sets) add("--set", set);
  for (const std::string& folder : plugin_path) add("--plugin-path", folder);
  return result;
}

std::vector<fs::path> RecipeOptions::plugin_folders() const {
  return plugin::default_search_path({plugin_path.begin(), plugin_path.end()});
}

std::string text_set(const std::string& key, const std::string& text) {
  return key + "=" + recipe::string_text(text);
}

fs::path shipped_recipe(const std::string& name) {
  return shipped_file(fs::path("recipes") / (name + ".toml"));
}

fs::path shipped_config(const std::string& name) {
  return shipped_file(fs::path("configs") / (name + ".toml"));
}

fs::path recipe_or_shipped(const std::string& file, const std::string& name) {
  return file.empty() ? shipped_recipe(name) : fs::path(file);
}

}  // namespace tally::cli
