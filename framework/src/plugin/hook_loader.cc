#include "plugin/hook_loader.h"

#include "plugin/host_context.h"
#include "plugin/library.h"
#include "plugin/search_path.h"
#include "report/text.h"

#include <algorithm>

namespace tally::plugin {
namespace {

std::string kind_of(const std::string& interface) {
  return interface.substr(0, interface.find('/'));
}

/// `sampler "rank_split", loss_reducer "token_mean"`
std::string list(const std::vector<const HookEntry*>& hooks) {
  std::string text;
  for (const HookEntry* hook : hooks) {
    text += (text.empty() ? "" : ", ") + kind_of(hook->interface) + " \"" + hook->name + "\"";
  }
  return text;
}

std::vector<const HookEntry*> hooks_of(const PluginDescriptor& descriptor) {
  std::vector<const HookEntry*> hooks;
  for (uint32_t i = 0; i < descriptor.hook_count; ++i) hooks.push_back(&descriptor.hooks[i]);
  return hooks;
}

std::string named(const PluginDescriptor& descriptor) {
  return std::string("plugin ") + descriptor.name + " " + descriptor.version;
}

[[noreturn]] void refuse_kind(const PluginDescriptor& descriptor, const recipe::Section& section,
                              const std::string& interface) {
  for (const HookEntry* hook : hooks_of(descriptor)) {
    if (kind_of(hook->interface) == kind_of(interface)) {
      throw PluginError(named(descriptor) + " offers " + hook->interface +
                        " and this program calls " + interface +
                        "; rebuild it with this program's headers");
    }
  }
  throw ConfigError(section.origin() + ": [" + section.path() + "] needs a " + kind_of(interface) +
                    ", and " + named(descriptor) + " offers only " + list(hooks_of(descriptor)) +
                    "; name another plugin");
}

const HookEntry& find_hook(const PluginDescriptor& descriptor, const recipe::Section& section,
                           const std::string& interface) {
  std::vector<const HookEntry*> hooks = hooks_of(descriptor);
  std::erase_if(hooks, [&](const HookEntry* hook) { return interface != hook->interface; });
  if (hooks.empty()) refuse_kind(descriptor, section, interface);
  const bool asked = section.has("hook");
  if (!asked && hooks.size() == 1) return *hooks.front();
  const std::string name = asked ? section.text("hook") : descriptor.name;
  const auto found =
      std::ranges::find_if(hooks, [&](const HookEntry* hook) { return name == hook->name; });
  if (found != hooks.end()) return **found;
  throw ConfigError(section.origin() + ": [" + section.path() + "] " +
                    (asked ? "asks for the hook \"" + report::shown(name) + "\", which "
                           : "names no hook, and ") +
                    named(descriptor) + (asked ? " lacks" : " has several") + "; it offers " +
                    list(hooks) + ": write one of them as hook = \"NAME\"");
}

std::unique_ptr<Hook> create(const HookEntry& entry, const HookIdentity& identity,
                             Context& context) {
  std::unique_ptr<Hook> hook;
  try {
    hook.reset(entry.create(context));
  } catch (const ConfigError&) {
    throw;  // It already says which line of the recipe to change.
  } catch (...) {
    rethrow_from_hook(identity, "in its constructor");
  }
  if (hook == nullptr) {
    throw PluginError(identity.text() +
                      " was not made: its factory returned null; write it with tally::hook<T>()");
  }
  return hook;
}

}  // namespace

HookLoader::HookLoader(std::vector<std::filesystem::path> folders, int64_t seed)
    : folders_(std::move(folders)), seed_(seed) {}

Made<Hook> HookLoader::make_hook(const recipe::Section& section, const std::string& interface) {
  const Library& library = load_library(find_plugin(section, folders_));
  const PluginDescriptor& descriptor = *library.descriptor;
  const HookEntry& entry = find_hook(descriptor, section, interface);
  HookIdentity identity{kind_of(interface), entry.name, descriptor.name, descriptor.version};
  auto context = std::make_shared<HostContext>(section, identity, shared_from_this());
  std::unique_ptr<Hook> hook = create(entry, identity, *context);
  const bool known = std::ranges::any_of(
      plugins_, [&](const LoadedPlugin& plugin) { return plugin.file == library.file; });
  if (!known) {
    plugins_.push_back({descriptor.name, descriptor.version, library.file, library.digest});
  }
  return Made<Hook>{std::move(context), std::move(identity), std::move(hook)};
}

}  // namespace tally::plugin
