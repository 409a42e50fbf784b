#include "checkpoint/safetensors.h"

#include "checkpoint/safetensors_header.h"

#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <bit>
#include <tuple>

namespace tally::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

/// Dense, on the CPU, with the values themselves in memory and not their negatives.
at::Tensor plain(const NamedTensor& named, const std::string& file) {
  const at::Tensor& tensor = named.tensor;
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized() ||
      dtype_name(tensor.scalar_type()) == nullptr)
    throw DataError("cannot write " + file + ": tensor '" + named.name + "' is " +
                    (tensor.defined() ? std::string(c10::toString(tensor.scalar_type())) + ", " +
                                            (tensor.layout() == at::kStrided ? "dense" : "sparse")
                                      : "undefined") +
                    "; convert it to a dense tensor of a dtype that safetensors knows");
  return tensor.detach().to(at::kCPU).resolve_neg().contiguous();
}

TensorSlot slot_of(const NamedTensor& named) {
  return {named.name, named.tensor.scalar_type(), named.tensor.sizes().vec(), 0,
          static_cast<int64_t>(named.tensor.nbytes())};
}

at::Tensor read_tensor(files::FileReader& file, const TensorSlot& slot) {
  at::Tensor tensor = at::empty(slot.shape, at::TensorOptions(slot.dtype));
  const auto size = static_cast<size_t>(slot.end - slot.begin);
  file.read(tensor.data_ptr(), size);
  if (slot.dtype == at::kBool) {
    const auto* bytes = static_cast<const uint8_t*>(tensor.const_data_ptr());
    // A bool that is neither 0 nor 1 has no meaning in C++.
    if (std::any_of(bytes, bytes + size, [](uint8_t byte) { return byte > 1; }))
      throw DataError("cannot use " + file.path().string() + ": tensor '" + slot.name +
                      "' is BOOL but has a byte other than 0 and 1; it is damaged, so take "
                      "another copy");
  }
  return tensor;
}

}  // namespace

void write_safetensors(files::FileWriter& file, const std::vector<NamedTensor>& tensors,
                       const Metadata& metadata) {
  const std::string name = file.path().string();
  std::vector<NamedTensor> ordered;
  for (const NamedTensor& named : tensors) ordered.push_back({named.name, plain(named, name)});
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const NamedTensor& one, const NamedTensor& other) {
                     const auto one_width = one.tensor.element_size();
                     const auto other_width = other.tensor.element_size();
                     return std::tie(other_width, one.name) < std::tie(one_width, other.name);
                   });
  SafetensorsHeader header{{}, metadata};
  int64_t offset = 0;
  for (const NamedTensor& named : ordered) {
    TensorSlot& slot = header.slots.emplace_back(slot_of(named));
    slot.begin += offset;
    slot.end += offset;
    offset = slot.end;
  }
  const std::string text = format_header(header, name);
  const auto length = static_cast<uint64_t>(text.size());
  file.append(&length, sizeof length);
  file.append(text);
  for (const NamedTensor& named : ordered)
    file.append(named.tensor.const_data_ptr(), named.tensor.nbytes());
}

files::FileEntry save_safetensors(const std::filesystem::path& path,
                                  const std::vector<NamedTensor>& tensors, const Metadata& metadata,
                                  files::FileSystem& system) {
  return files::replace_file(
      path, [&](files::FileWriter& file) { write_safetensors(file, tensors, metadata); }, system);
}

TensorFile read_safetensors(files::FileReader& file) {
  const std::string name = file.path().string();
  uint64_t length = 0;
  file.read(&length, sizeof length);
  const auto rest = static_cast<uint64_t>(file.size()) - sizeof length;
  if (length > rest || length > static_cast<uint64_t>(kLongestHeader))
    throw DataError("cannot use " + name + ": its header is said to take " +
                    std::to_string(length) + " bytes, but " + std::to_string(rest) +
                    " follow and at most " + std::to_string(kLongestHeader) +
                    " are allowed; it is damaged or no safetensors file, so take another copy");
  std::string text(length, '\0');
  file.read(text.data(), text.size());
  SafetensorsHeader header = parse_header(text, static_cast<int64_t>(rest - length), name);
  TensorFile result;
  for (const TensorSlot& slot : header.slots)
    result.tensors.push_back({slot.name, read_tensor(file, slot)});
  result.metadata = std::move(header.metadata);
  return result;
}

TensorFile load_safetensors(const std::filesystem::path& path, files::Links links,
                            files::FileSystem& system) {
  files::FileReader file(path, links, system);
  TensorFile result = read_safetensors(file);
  file.finish();
  return result;
}

}  // namespace tally::checkpoint
