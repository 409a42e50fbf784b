#pragma once

#include "recipe/section.h"

#include <filesystem>
#include <string>
#include <vector>

namespace tally::plugin {

/// Plugin file that `section` names by its key `plugin`: NAME is searched as NAME.so in `folders`,
/// and a value with a slash is a path relative to the file that wrote it. The first file found
/// decides, whatever is wrong with it. Throws ConfigError when the section names no plugin,
/// PluginError listing what was searched when there is no such file.
std::filesystem::path find_plugin(const recipe::Section& section,
                                  const std::vector<std::filesystem::path>& folders);

}  // namespace tally::plugin
