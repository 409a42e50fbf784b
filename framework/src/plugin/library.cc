#include "plugin/library.h"

#include "plugin/stamp.h"

#define BOOST_DLL_USE_STD_FS
#include <dlfcn.h>
#include <tally/error.h>
#include <boost/dll/shared_library.hpp>

#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace tally::plugin {
namespace {

std::string read_file(const std::filesystem::path& file) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(file, error);
  std::ifstream stream(file, std::ios::binary);
  std::string bytes;
  if (regular && stream) {
    bytes.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  if (!regular || !stream || stream.bad()) {
    throw PluginError("plugin " + file.string() +
                      " cannot be read; check that it is a file and its permissions");
  }
  return bytes;
}

/// Boost's own text ends in a wrong "Bad file descriptor", so the reason comes from dlerror.
/// REQUIRES: one call at a time.
const PluginDescriptor* open_for_good(const std::filesystem::path& file) {
  namespace load_mode = boost::dll::load_mode;
  // Leaked, so that no library is ever unloaded.
  static auto* opened = new std::vector<std::unique_ptr<boost::dll::shared_library>>;
  auto library = std::make_unique<boost::dll::shared_library>();
  std::error_code error;
  library->load(file, load_mode::rtld_now | load_mode::rtld_local, error);
  if (!library->is_loaded()) {
    const char* reason = ::dlerror();
    throw PluginError("plugin " + file.string() + " cannot be loaded: " +
                      (reason != nullptr ? std::string(reason) : error.message()) +
                      "; check what it links with readelf -d");
  }
  const boost::dll::shared_library& kept = *opened->emplace_back(std::move(library));
  if (!kept.has(kDescriptorSymbol)) {
    throw PluginError("plugin " + file.string() + " exports no " + kDescriptorSymbol +
                      "; declare its hooks with TALLY_PLUGIN in one source file and build it with "
                      "tally_add_plugin()");
  }
  return &kept.get<const PluginDescriptor>(kDescriptorSymbol);
}

void check_hooks(const PluginDescriptor& descriptor, const std::string& broken) {
  std::set<std::pair<std::string, std::string>> seen;
  for (uint32_t i = 0; i < descriptor.hook_count; ++i) {
    const HookEntry& hook = descriptor.hooks[i];
    if (hook.interface == nullptr || hook.name == nullptr || hook.create == nullptr) {
      throw PluginError(broken + "hook " + std::to_string(i) +
                        " has no interface, no name or no factory; write it with tally::hook<T>()");
    }
    if (!seen.emplace(hook.interface, hook.name).second) {
      throw PluginError(broken + "two hooks of " + hook.interface + " are named \"" + hook.name +
                        "\"; give each a name of its own");
    }
  }
}

void check_descriptor(const PluginDescriptor& descriptor, const std::string& stamp,
                      const std::filesystem::path& file) {
  const std::string broken = "plugin " + file.string() + " has a broken descriptor: ";
  // First: no field may be read that a smaller descriptor does not have.
  if (descriptor.size < sizeof(PluginDescriptor)) {
    throw PluginError(broken + "it is " + std::to_string(descriptor.size) + " bytes and at least " +
                      std::to_string(sizeof(PluginDescriptor)) +
                      " are needed; rebuild it with this program's headers");
  }
  if (descriptor.stamp == nullptr || stamp != descriptor.stamp) {
    throw PluginError(broken + "its stamp is not the one in the file; write it with TALLY_PLUGIN");
  }
  if (descriptor.name == nullptr || descriptor.version == nullptr || descriptor.hook_count == 0 ||
      descriptor.hooks == nullptr) {
    throw PluginError(broken + "name, version or hooks are missing; write it with TALLY_PLUGIN");
  }
  check_hooks(descriptor, broken);
}

Library load(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  check_elf(bytes, file);
  const std::string stamp = find_stamp(bytes, file);
  compare_stamps(stamp, kStamp, file);
  const PluginDescriptor* descriptor = open_for_good(file);
  check_descriptor(*descriptor, stamp, file);
  return Library{file, sha256(bytes), descriptor};
}

}  // namespace

const Library& load_library(const std::filesystem::path& file) {
  static auto* mutex = new std::mutex;
  static auto* libraries = new std::map<std::filesystem::path, Library>;
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::canonical(file, error);
  if (error) {
    throw PluginError("plugin " + file.string() + " cannot be read: " + error.message());
  }
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto known = libraries->find(canonical);
  if (known != libraries->end()) return known->second;
  return libraries->emplace(canonical, load(canonical)).first->second;
}

}  // namespace tally::plugin
