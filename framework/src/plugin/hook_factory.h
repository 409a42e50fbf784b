#pragma once

#include "digest/sha256.h"
#include "plugin/hooked.h"
#include "recipe/section.h"

#include <tally/loss_reducer.h>
#include <tally/sampler.h>
#include <tally/state_provider.h>
#include <tally/sync_policy.h>
#include <tally/task.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tally::plugin {

class HookLoader;

/// A plugin that this process uses.
struct LoadedPlugin {
  std::string name;
  std::string version;
  std::filesystem::path file;  ///< Canonical and absolute.
  Digest digest;               ///< SHA-256 of the file.
};

/// Makes hooks from sections of a recipe: finds the plugin file, checks its stamp, loads it for
/// good, and calls the hook's factory.
///
/// A section names its plugin with `plugin = "NAME"` (searched) or `plugin = "./path/to/file.so"`
/// (relative to the recipe; final), and the hook with `hook = "NAME"`, by default the only one of
/// its kind in the plugin or the one of the plugin's name.
class HookFactory {
 public:
  /// `folders`: searched in order for NAME.so; the first file found decides. See
  /// default_search_path().
  HookFactory(std::vector<std::filesystem::path> folders, int64_t seed);
  ~HookFactory();

  /// T is one of the five interfaces. Throws ConfigError for what is wrong with the recipe: a
  /// section without plugin, a hook or a kind of hook that the plugin does not offer, an option
  /// that the hook rejects. Throws PluginError for what is wrong with the file: absent, damaged,
  /// of another stamp, or its factory fails. The context that the hook was given lives as long as
  /// the result.
  template <class T>
  Hooked<T> create(const recipe::Section& section);

  /// Every plugin from which a hook was made, in order of first use.
  std::vector<LoadedPlugin> plugins() const;

 private:
  std::shared_ptr<HookLoader> loader_;
};

/// `--plugin-path` folders, then TALLY_PLUGIN_PATH (colon-separated), then ../lib/tally/plugins
/// beside the program. Throws ConfigError when one of the first is no folder.
std::vector<std::filesystem::path> default_search_path(
    const std::vector<std::filesystem::path>& from_command_line);

}  // namespace tally::plugin
