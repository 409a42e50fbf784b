#pragma once

#include "digest/sha256.h"

#include <cstdint>
#include <string>

namespace tally::files {

/// A file as a manifest or a data lock names it.
struct FileEntry {
  std::string name;  ///< Relative to the folder of the manifest or lock.
  int64_t size = 0;  ///< Bytes.
  Digest digest;
  bool operator==(const FileEntry&) const = default;
};

}  // namespace tally::files
