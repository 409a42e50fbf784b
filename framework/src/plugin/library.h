#pragma once

#include "digest/sha256.h"

#include <tally/abi.h>

#include <filesystem>

namespace tally::plugin {

/// A plugin file in this process: checked, loaded, never unloaded, because an autograd node or an
/// exception from an unloaded library is a crash.
struct Library {
  std::filesystem::path file;  ///< Canonical and absolute.
  Digest digest;               ///< SHA-256 of the bytes that were checked.
  const PluginDescriptor* descriptor;
};

/// The library of `file`, loaded at the first call for its canonical path. Throws PluginError when
/// the file cannot be read, is no ELF file or truncated, has no stamp or another one, does not
/// load, or has no usable descriptor. Nothing of the file runs before its stamp is found to be
/// right. [any thread]
const Library& load_library(const std::filesystem::path& file);

}  // namespace tally::plugin
