#pragma once

#include "plugin/hook_factory.h"
#include "recipe/recipe.h"
#include "run/optimizer.h"
#include "run/settings.h"

#include <memory>
#include <vector>

namespace tally::run {

/// A recipe with its hooks made and every key read.
struct Job {
  recipe::Recipe recipe;
  Settings settings;
  OptimizerOptions optimizer;
  std::unique_ptr<plugin::HookFactory> factory;  ///< Owns what the hooks refer to: outlives them.
  plugin::Hooked<Task> task;
  plugin::Hooked<Sampler> sampler;
  plugin::Hooked<LossReducer> reducer;
  plugin::Hooked<SyncPolicy> policy;
  std::vector<plugin::Hooked<StateProvider>> providers;
};

/// The hooks of a job.
struct Hooks {
  plugin::Hooked<Task> task;
  plugin::Hooked<Sampler> sampler;
  plugin::Hooked<LossReducer> reducer;
  plugin::Hooked<SyncPolicy> policy;
  std::vector<plugin::Hooked<StateProvider>> providers;
};

/// A job whose hooks are there already, of which `factory` made some. Keys that nobody reads are
/// not looked for.
Job assemble(const recipe::Recipe& recipe, std::unique_ptr<plugin::HookFactory> factory,
             Hooks hooks);

/// Throws ConfigError for a recipe that cannot be used, an unread key among it, and PluginError.
Job assemble(const recipe::Recipe& recipe,
             const std::vector<std::filesystem::path>& plugin_folders);

/// The dotted keys of --set that neither the host nor a plugin of this recipe knows. Throws as
/// assemble does, but not for an unread key.
std::vector<std::string> unknown_sets(const recipe::Recipe& recipe,
                                      const std::vector<std::filesystem::path>& plugin_folders);

}  // namespace tally::run
