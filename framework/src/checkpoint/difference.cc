#include "checkpoint/difference.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace tally::checkpoint {
namespace {

std::map<std::string, at::Tensor> by_name(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, at::Tensor> result;
  for (const NamedTensor& tensor : tensors) result.emplace(tensor.name, tensor.tensor);
  return result;
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.dtype() != b.dtype()) return false;
  const at::Tensor first = a.contiguous();
  const at::Tensor second = b.contiguous();
  return std::memcmp(first.const_data_ptr(), second.const_data_ptr(), first.nbytes()) == 0;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0.0;
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

/// Sentences about two sets of tensors; `largest` grows to the largest difference of values.
void compare(const std::string& what, const std::vector<NamedTensor>& a,
             const std::vector<NamedTensor>& b, Difference& result, double& largest) {
  const auto first = by_name(a);
  const auto second = by_name(b);
  for (const auto& [name, tensor] : first) {
    const auto found = second.find(name);
    if (found == second.end()) {
      result.sentences.push_back(fmt::format("{}: only the first has '{}'", what, name));
      largest = std::numeric_limits<double>::infinity();
    } else if (!same_bytes(tensor, found->second)) {
      const double difference = largest_difference(tensor, found->second);
      largest = std::isnan(difference) ? difference : std::max(largest, difference);
      result.sentences.push_back(
          fmt::format("{}: '{}' differs by up to {:g}", what, name, difference));
    }
  }
  for (const auto& [name, tensor] : second) {
    if (first.contains(name)) continue;
    result.sentences.push_back(fmt::format("{}: only the second has '{}'", what, name));
    largest = std::numeric_limits<double>::infinity();
  }
}

const files::FileEntry* entry_of(const Manifest& manifest, const std::string& name) {
  const auto found =
      std::find_if(manifest.files.begin(), manifest.files.end(),
                   [&](const files::FileEntry& entry) { return entry.name == name; });
  return found == manifest.files.end() ? nullptr : &*found;
}

}  // namespace

Difference difference(const CheckpointReader& a, const CheckpointReader& b) {
  Difference result;
  double ignored = 0.0;
  compare("model", a.model(), b.model(), result, result.max_parameter_difference);
  compare("optimizer", a.optimizer(), b.optimizer(), result, ignored);
  if (a.world() != b.world()) {
    result.sentences.push_back(
        fmt::format("the number of ranks differs: {} and {}", a.world(), b.world()));
  }
  for (int64_t rank = 0; rank < std::min(a.world(), b.world()); ++rank) {
    const files::FileEntry* first = entry_of(a.manifest(), rank_file(rank));
    const files::FileEntry* second = entry_of(b.manifest(), rank_file(rank));
    if (first != nullptr && second != nullptr && first->digest == second->digest) continue;
    result.sentences.push_back(
        fmt::format("the states of rank {} ({}) differ", rank, rank_file(rank)));
  }
  return result;
}

}  // namespace tally::checkpoint
