#pragma once

#include <torch/headeronly/version.h>  // TORCH_VERSION, macros only

#include <cstdint>

/// The contract between a plugin file and the host: one exported C symbol, and a stamp that can be
/// read before any code runs. Plain data. Fields are appended, never moved.
namespace tally {

class Context;
class Hook;

#define TALLY_STRING_OF(x) #x
#define TALLY_STRING(x) TALLY_STRING_OF(x)

#if defined(__x86_64__)
#define TALLY_ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define TALLY_ARCHITECTURE "aarch64"
#else
#error "tally runs on x86_64 and aarch64"
#endif

#if defined(_LIBCPP_VERSION)
#define TALLY_STANDARD_LIBRARY "libc++"
#else
#define TALLY_STANDARD_LIBRARY "libstdc++"
#endif

#if defined(_GLIBCXX_DEBUG)
#define TALLY_STANDARD_LIBRARY_DEBUG "1"
#else
#define TALLY_STANDARD_LIBRARY_DEBUG "0"
#endif

#if defined(_GLIBCXX_USE_CXX11_ABI)
#define TALLY_CXX11_ABI TALLY_STRING(_GLIBCXX_USE_CXX11_ABI)
#else
#define TALLY_CXX11_ABI "none"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define TALLY_SANITIZERS "address"
#elif defined(__SANITIZE_THREAD__)
#define TALLY_SANITIZERS "thread"
#else
#define TALLY_SANITIZERS "none"
#endif

/// Number of the hook interfaces as a whole. A released number freezes every vtable and type in
/// this folder.
#define TALLY_HOOK_API 1

/// `tally-stamp:KEY=VALUE;...;end`. The host looks for the prefix in the file and compares the text
/// with its own.
inline constexpr char kStamp[] = "tally-stamp:hook-api=" TALLY_STRING(
    TALLY_HOOK_API) ";torch=" TORCH_VERSION ";architecture=" TALLY_ARCHITECTURE
                    ";standard-library=" TALLY_STANDARD_LIBRARY
                    ";library-debug=" TALLY_STANDARD_LIBRARY_DEBUG ";cxx11-abi=" TALLY_CXX11_ABI
                    ";sanitizers=" TALLY_SANITIZERS ";end";

/// One hook that a plugin offers.
struct HookEntry {
  /// "task/1", "sampler/1", "loss_reducer/1", "sync_policy/1" or "state_provider/1".
  const char* interface;
  const char* name;  ///< Unique among the plugin's hooks of this interface.
  /// A new hook, owned by the caller; really of the interface's class. May throw.
  Hook* (*create)(Context&);
};

/// What the exported symbol `tally_plugin_v1` holds. Everything has static storage duration.
struct PluginDescriptor {
  uint32_t size;  ///< sizeof(PluginDescriptor) of the plugin's build.
  uint32_t hook_count;
  const char* stamp;
  const char* name;
  const char* version;
  const HookEntry* hooks;  ///< hook_count entries.
};

inline constexpr char kDescriptorSymbol[] = "tally_plugin_v1";

}  // namespace tally
