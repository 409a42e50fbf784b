#include "plugin/search_path.h"

#include "plugin/hook_factory.h"
#include "recipe/file_name.h"
#include "report/text.h"

#include <tally/error.h>

#include <cstdlib>
#include <string_view>
#include <system_error>

namespace tally::plugin {
namespace {

/// True also for a file that may not be read: it was found, and reading it says what is wrong.
bool is_there(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(file, error));
}

std::filesystem::path find_by_name(const std::string& name, const std::string& origin,
                                   const std::vector<std::filesystem::path>& folders) {
  std::string searched;
  for (const std::filesystem::path& folder : folders) {
    const std::filesystem::path file = folder / (name + ".so");
    if (is_there(file)) return file;
    searched += (searched.empty() ? "" : ", ") + folder.string();
  }
  const std::string shown = report::shown(name);
  throw PluginError(origin + ": plugin \"" + shown + "\" was not found: no folder holds " + shown +
                    ".so (searched " + (searched.empty() ? "none" : searched) +
                    "); check the name, or name its folder with --plugin-path or "
                    "TALLY_PLUGIN_PATH");
}

void require_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return;
  throw ConfigError("--plugin-path " + report::shown(folder.native()) +
                    " is no folder; name the one that holds the plugin files");
}

}  // namespace

std::filesystem::path find_plugin(const recipe::Section& section,
                                  const std::vector<std::filesystem::path>& folders) {
  if (!section.has("plugin")) {
    throw ConfigError(section.origin() + ": [" + section.path() +
                      "] names no plugin; write plugin = \"NAME\" in it");
  }
  const std::string name = section.text("plugin");
  if (const auto fault = recipe::fault_of_path(name)) section.reject("plugin", *fault);
  if (name == "." || name == "..") {
    section.reject("plugin", "is a folder; write the NAME of a file NAME.so, or the file's path");
  }
  if (name.find('/') == std::string::npos) {
    if (name.ends_with(".so")) {
      section.reject("plugin",
                     "is neither a name nor a path; write it without .so, or as ./" + name);
    }
    return find_by_name(name, section.origin(), folders);
  }
  const std::filesystem::path file = std::filesystem::path(section.folder_of("plugin")) / name;
  if (!is_there(file)) {
    throw PluginError(section.origin() + ": plugin \"" + report::shown(name) +
                      "\" was not found: there is no " + file.lexically_normal().string() +
                      "; a path is relative to the file that wrote it");
  }
  return file;
}

std::vector<std::filesystem::path> default_search_path(
    const std::vector<std::filesystem::path>& from_command_line) {
  std::vector<std::filesystem::path> folders = from_command_line;
  for (const std::filesystem::path& folder : folders) require_folder(folder);
  const char* variable = std::getenv("TALLY_PLUGIN_PATH");
  std::string_view rest = variable != nullptr ? variable : "";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (!folder.empty()) folders.emplace_back(folder);
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  folders.push_back(program.parent_path().parent_path() / "lib/tally/plugins");
  return folders;
}

}  // namespace tally::plugin
