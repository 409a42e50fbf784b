#pragma once

#include <tally/error.h>

#include <memory>
#include <string>
#include <utility>

namespace tally::plugin {

/// Which hook of which plugin, for sentences: `sampler "rank_split" (plugin rank_split 0.1.0)`.
struct HookIdentity {
  std::string kind;  ///< "sampler"
  std::string hook;
  std::string plugin;
  std::string version;

  std::string text() const;
};

/// Turns the exception under way into one whose text starts with the identity and the place: a type
/// of tally/error.h keeps its exit code, anything else becomes a PluginError. Must be called from a
/// catch block.
[[noreturn]] void rethrow_from_hook(const HookIdentity& identity, const std::string& place);

/// What is being done on this thread, for sentences: "at window 812, rank 3". Set by the trainer
/// and the loader. [per thread]
void set_place(std::string place);
const std::string& place();

/// A hook and the only way to call it: every exception that leaves it names hook, plugin and place.
template <class T>
class Hooked {
 public:
  /// `context`: what the hook refers to; released after the hook.
  Hooked(std::unique_ptr<T> hook, HookIdentity identity,
         std::shared_ptr<const void> context = nullptr)
      : held_(std::make_unique<Held>(Held{std::move(context), std::move(hook)})),
        identity_(std::move(identity)) {}

  /// `call(function)` runs function(T&) and returns its result.
  template <class F>
  decltype(auto) call(F&& function) const {
    try {
      return std::forward<F>(function)(*held_->hook);
    } catch (...) {
      rethrow_from_hook(identity_, place());
    }
  }

  const HookIdentity& identity() const { return identity_; }

 private:
  /// One allocation, so that moving a Hooked cannot release a context before its hook.
  struct Held {
    std::shared_ptr<const void> context;
    std::unique_ptr<T> hook;
  };
  std::unique_ptr<Held> held_;
  HookIdentity identity_;
};

}  // namespace tally::plugin
