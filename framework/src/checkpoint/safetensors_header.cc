#include "checkpoint/safetensors_header.h"

#include "checkpoint/json.h"

#include <tally/error.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

namespace tally::checkpoint {
namespace {

struct DtypeName {
  c10::ScalarType dtype;
  const char* name;
};
constexpr std::array kDtypes = {
    DtypeName{c10::ScalarType::Double, "F64"}, DtypeName{c10::ScalarType::Float, "F32"},
    DtypeName{c10::ScalarType::Half, "F16"},   DtypeName{c10::ScalarType::BFloat16, "BF16"},
    DtypeName{c10::ScalarType::Long, "I64"},   DtypeName{c10::ScalarType::Int, "I32"},
    DtypeName{c10::ScalarType::Short, "I16"},  DtypeName{c10::ScalarType::Char, "I8"},
    DtypeName{c10::ScalarType::Byte, "U8"},    DtypeName{c10::ScalarType::Bool, "BOOL"},
};

constexpr char kMetadataKey[] = "__metadata__";

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw DataError("cannot use " + file + ": " + what +
                  "; it is damaged or no safetensors file, so take another copy");
}

[[noreturn]] void refuse(const std::string& file, const std::string& tensor,
                         const std::string& what) {
  refuse(file, "tensor '" + tensor + "' " + what);
}

c10::ScalarType parse_dtype(const std::string& file, const std::string& tensor,
                            const nlohmann::json& entry) {
  const std::string found = text_at(entry, "dtype", file + ", tensor '" + tensor + "'");
  std::string known;
  for (const auto& [dtype, name] : kDtypes) {
    if (found == name) return dtype;
    known += known.empty() ? name : std::string(" ") + name;
  }
  throw DataError("cannot use " + file + ": tensor '" + tensor + "' has the dtype '" + found +
                  "', but tally reads " + known + "; convert the tensor first");
}

std::vector<int64_t> parse_integers(const std::string& file, const std::string& tensor,
                                    const nlohmann::json& entry, const char* key) {
  const nlohmann::json& array = entry.at(key);
  std::vector<int64_t> values;
  bool valid = array.is_array();
  for (size_t i = 0; valid && i < array.size(); ++i) {
    valid = array[i].is_number_unsigned() &&
            array[i].get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (valid) values.push_back(array[i].get<int64_t>());
  }
  if (!valid)
    refuse(file, tensor, "has a '" + std::string(key) + "' that is no array of whole numbers");
  return values;
}

/// Bytes of a tensor. Zero-sized dimensions do not excuse the others: LibTorch multiplies those
/// too.
int64_t bytes_of(const std::string& file, const TensorSlot& slot) {
  int64_t bytes = static_cast<int64_t>(c10::elementSize(slot.dtype));
  bool empty = false;
  for (const int64_t size : slot.shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      refuse(file, slot.name, "has a shape of more than 2^63 bytes");
  }
  return empty ? 0 : bytes;
}

TensorSlot parse_slot(const std::string& file, const std::string& name, const nlohmann::json& entry,
                      int64_t data_size) {
  require_keys(entry, {"data_offsets", "dtype", "shape"}, file + ", tensor '" + name + "'");
  TensorSlot slot{name, parse_dtype(file, name, entry), parse_integers(file, name, entry, "shape"),
                  0, 0};
  const std::vector<int64_t> offsets = parse_integers(file, name, entry, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    refuse(file, name, "has 'data_offsets' that are no begin and end");
  slot.begin = offsets[0];
  slot.end = offsets[1];
  const std::string place =
      "lies at bytes " + std::to_string(slot.begin) + " to " + std::to_string(slot.end);
  if (slot.end > data_size)
    refuse(file, name, place + ", but the file holds " + std::to_string(data_size));
  const int64_t bytes = bytes_of(file, slot);
  if (bytes != slot.end - slot.begin)
    refuse(file, name, place + ", but its dtype and shape take " + std::to_string(bytes));
  return slot;
}

Metadata parse_metadata(const std::string& file, const nlohmann::json& object) {
  if (!object.is_object()) refuse(file, "its '__metadata__' is no object");
  Metadata metadata;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) refuse(file, "its metadata '" + key + "' is no text");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Every byte of the data must belong to exactly one tensor, or a flipped offset could go unseen.
void check_cover(const std::string& file, const std::vector<TensorSlot>& slots, int64_t data_size) {
  int64_t covered = 0;
  for (const TensorSlot& slot : slots) {
    if (slot.begin != covered)
      refuse(file, slot.name,
             "begins at byte " + std::to_string(slot.begin) + ", but the one before ends at " +
                 std::to_string(covered));
    covered = slot.end;
  }
  if (covered != data_size)
    refuse(file, std::to_string(data_size - covered) + " bytes follow the last tensor");
}

void check_names(const SafetensorsHeader& header, const std::string& file) {
  std::vector<std::string> names;
  for (const TensorSlot& slot : header.slots) names.push_back(slot.name);
  std::sort(names.begin(), names.end());
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string doing = "cannot write " + file + ": the tensor name '" + names[i] + "' ";
    if (names[i].empty() || names[i] == kMetadataKey || !is_utf8(names[i]))
      throw DataError(doing + "is empty, reserved or not UTF-8; give the tensor another name");
    if (i > 0 && names[i] == names[i - 1])
      throw DataError(doing + "is used twice; give one of the tensors another name");
  }
  for (const auto& [key, value] : header.metadata) {
    if (!is_utf8(key) || !is_utf8(value))
      throw DataError("cannot write " + file + ": the metadata '" + key +
                      "' is not UTF-8; only text can stand there");
  }
}

}  // namespace

const char* dtype_name(c10::ScalarType dtype) {
  for (const auto& [known, name] : kDtypes) {
    if (known == dtype) return name;
  }
  return nullptr;
}

std::string format_header(const SafetensorsHeader& header, const std::string& file) {
  check_names(header, file);
  std::string text = "{";
  if (!header.metadata.empty())
    text += "\"__metadata__\":" + nlohmann::json(header.metadata).dump();
  for (const TensorSlot& slot : header.slots) {
    if (text.size() > 1) text += ',';
    text += nlohmann::json(slot.name).dump() + ":";
    text += nlohmann::json{{"dtype", dtype_name(slot.dtype)},
                           {"shape", slot.shape},
                           {"data_offsets", {slot.begin, slot.end}}}
                .dump();
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (static_cast<int64_t>(text.size()) > kLongestHeader)
    throw DataError("cannot write " + file + ": its header takes " + std::to_string(text.size()) +
                    " bytes, but at most " + std::to_string(kLongestHeader) +
                    " can be read; spread the tensors over several files");
  return text;
}

SafetensorsHeader parse_header(const std::string& text, int64_t data_size,
                               const std::string& file) {
  if (!text.starts_with('{')) refuse(file, "its header does not begin with '{'");
  const nlohmann::json json = parse_json(text, file);
  SafetensorsHeader header;
  for (const auto& [name, entry] : json.items()) {
    if (name == kMetadataKey)
      header.metadata = parse_metadata(file, entry);
    else
      header.slots.push_back(parse_slot(file, name, entry, data_size));
  }
  std::sort(header.slots.begin(), header.slots.end(),
            [](const TensorSlot& one, const TensorSlot& other) {
              return std::tie(one.begin, one.end, one.name) <
                     std::tie(other.begin, other.end, other.name);
            });
  check_cover(file, header.slots, data_size);
  return header;
}

}  // namespace tally::checkpoint
