#pragma once

#include "files/atomic_file.h"
#include "files/file_reader.h"

#include <tally/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tally::checkpoint {

/// The safetensors format, which Python's package of that name opens: eight bytes with the length
/// of a JSON header, the header, the tensors' bytes without gaps.
/// Dtypes: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL.
using Metadata = std::map<std::string, std::string>;

struct TensorFile {
  std::vector<NamedTensor> tensors;  ///< On the CPU, each with memory of its own, in the order of
                                     ///< their bytes in the file.
  Metadata metadata;
};

/// Any device, shape and layout of strides. Every tensor is aligned in the file to its element
/// size: wide elements come first, and equally wide ones by name, so equal values give equal bytes.
/// Throws DataError naming file and tensor for another dtype, a name that is empty, used twice or
/// not UTF-8.
void write_safetensors(files::FileWriter& file, const std::vector<NamedTensor>& tensors,
                       const Metadata& metadata = {});

/// The same as a file of its own, by replace_file().
files::FileEntry save_safetensors(const std::filesystem::path& path,
                                  const std::vector<NamedTensor>& tensors,
                                  const Metadata& metadata = {},
                                  files::FileSystem& system = files::FileSystem::real());

/// Checks the whole header against the size of the file before any tensor is allocated. Throws
/// DataError naming file and tensor. `file` stands at its begin, and afterwards at its end.
TensorFile read_safetensors(files::FileReader& file);

TensorFile load_safetensors(const std::filesystem::path& path,
                            files::Links links = files::Links::kFollow,
                            files::FileSystem& system = files::FileSystem::real());

}  // namespace tally::checkpoint
