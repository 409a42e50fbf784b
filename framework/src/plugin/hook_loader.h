#pragma once

#include "plugin/hook_factory.h"
#include "plugin/hooked.h"
#include "recipe/section.h"

#include <tally/context.h>
#include <tally/error.h>
#include <tally/hook.h>
#include <tally/plugin.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tally::plugin {

/// A new hook with what it refers to. `context` must be released after `hook`.
template <class T>
struct Made {
  std::shared_ptr<Context> context;
  HookIdentity identity;
  std::unique_ptr<T> hook;
};

/// Makes hooks of any kind from sections; what a HookFactory and the contexts of its hooks share.
class HookLoader : public std::enable_shared_from_this<HookLoader> {
 public:
  HookLoader(std::vector<std::filesystem::path> folders, int64_t seed);

  template <class T>
  Made<T> make(const recipe::Section& section) {
    Made<Hook> made = make_hook(section, interface_of<T>());
    T* const hook = dynamic_cast<T*>(made.hook.get());
    if (hook == nullptr) {
      throw PluginError(made.identity.text() + " is declared as " + interface_of<T>() +
                        " but its factory makes something else; write it with tally::hook<T>()");
    }
    static_cast<void>(made.hook.release());
    return Made<T>{std::move(made.context), std::move(made.identity), std::unique_ptr<T>(hook)};
  }

  int64_t seed() const { return seed_; }
  const std::vector<LoadedPlugin>& plugins() const { return plugins_; }

 private:
  Made<Hook> make_hook(const recipe::Section& section, const std::string& interface);

  const std::vector<std::filesystem::path> folders_;
  const int64_t seed_;
  std::vector<LoadedPlugin> plugins_;
};

}  // namespace tally::plugin
