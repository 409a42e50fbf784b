#pragma once

#include "checkpoint/safetensors.h"

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tally::checkpoint {

/// One tensor as the header of a safetensors file describes it.
struct TensorSlot {
  std::string name;
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> shape;
  int64_t begin = 0;  ///< First byte, counted from the end of the header.
  int64_t end = 0;    ///< One past the last byte.
};

struct SafetensorsHeader {
  std::vector<TensorSlot> slots;  ///< Ordered by begin, without gap or overlap.
  Metadata metadata;
};

/// Longest header that is read or written, in bytes; the Python package has the same limit.
inline constexpr int64_t kLongestHeader = 100'000'000;

/// "F32"; nullptr for a dtype that the format does not know.
const char* dtype_name(c10::ScalarType dtype);

/// The header as text, padded so that the bytes after it are aligned to 8. `file` is for errors.
std::string format_header(const SafetensorsHeader& header, const std::string& file);

/// Checks every claim of the header against `data_size`, the bytes that follow it. Throws DataError
/// naming file and tensor.
SafetensorsHeader parse_header(const std::string& text, int64_t data_size, const std::string& file);

}  // namespace tally::checkpoint
