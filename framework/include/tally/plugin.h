#pragma once

#include <tally/abi.h>
#include <tally/config.h>
#include <tally/context.h>
#include <tally/loss_reducer.h>
#include <tally/sampler.h>
#include <tally/state_provider.h>
#include <tally/sync_policy.h>
#include <tally/task.h>

#include <iterator>
#include <type_traits>

/// How a plugin says what it offers:
///
///     TALLY_PLUGIN("token_mean", "0.1.0", tally::hook<TokenMean>("token_mean"))
///
/// once, at namespace scope, in one source file. A class becomes a hook by deriving from one
/// interface and having a constructor that takes tally::Context&. The linker script that
/// tally_add_plugin() sets exports this one symbol.
namespace tally {

/// The interface that a hook class implements, as the descriptor writes it.
template <class T>
constexpr const char* interface_of() {
  if constexpr (std::is_base_of_v<Task, T>) return "task/1";
  if constexpr (std::is_base_of_v<Sampler, T>) return "sampler/1";
  if constexpr (std::is_base_of_v<LossReducer, T>) return "loss_reducer/1";
  if constexpr (std::is_base_of_v<SyncPolicy, T>) return "sync_policy/1";
  if constexpr (std::is_base_of_v<StateProvider, T>) return "state_provider/1";
  return nullptr;
}

template <class T>
constexpr HookEntry hook(const char* name) {
  static_assert(
      interface_of<T>() != nullptr,
      "a hook derives from tally::Task, Sampler, LossReducer, SyncPolicy or StateProvider");
  static_assert(!std::is_abstract_v<T>,
                "a hook overrides every pure virtual function of its interface");
  static_assert(std::is_constructible_v<T, Context&>,
                "a hook has a constructor that takes tally::Context&");
  return HookEntry{interface_of<T>(), name,
                   [](Context& context) -> Hook* { return new T(context); }};
}

}  // namespace tally

#define TALLY_PLUGIN(plugin_name, plugin_version, ...)               \
  static constexpr ::tally::HookEntry kTallyHooks[] = {__VA_ARGS__}; \
  extern "C" __attribute__((visibility("default")))                  \
  const ::tally::PluginDescriptor tally_plugin_v1;                   \
  const ::tally::PluginDescriptor tally_plugin_v1 = {                \
      sizeof(::tally::PluginDescriptor),                             \
      static_cast<uint32_t>(std::size(kTallyHooks)),                 \
      ::tally::kStamp,                                               \
      plugin_name,                                                   \
      plugin_version,                                                \
      kTallyHooks};
