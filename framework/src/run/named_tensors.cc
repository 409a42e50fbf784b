#include "run/named_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>

namespace tally::run {
namespace {

using ByName = std::map<std::string, at::Tensor>;

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("{}[{}]", c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ", "));
}

/// What keeps `saved` from being the values of `targets`; empty when nothing does.
std::vector<std::string> mismatches(const ByName& saved, const std::vector<NamedTensor>& targets) {
  std::vector<std::string> found;
  ByName unexpected = saved;
  for (const NamedTensor& target : targets) {
    const auto value = saved.find(target.name);
    if (value == saved.end()) {
      found.push_back(fmt::format("'{}' is missing", target.name));
    } else if (shape_of(value->second) != shape_of(target.tensor)) {
      found.push_back(fmt::format("'{}' is {} and should be {}", target.name,
                                  shape_of(value->second), shape_of(target.tensor)));
    }
    unexpected.erase(target.name);
  }
  for (const auto& [name, tensor] : unexpected)
    found.push_back(fmt::format("'{}' is unexpected", name));
  return found;
}

}  // namespace

std::vector<NamedTensor> model_of(const plugin::Hooked<Task>& task) {
  return task.call([](Task& hook) {
    std::vector<NamedTensor> model = hook.parameters();
    for (NamedTensor& buffer : hook.buffers()) model.push_back(std::move(buffer));
    return model;
  });
}

void copy_by_name(const std::vector<NamedTensor>& saved, const std::vector<NamedTensor>& targets,
                  const std::string& what, const std::string& remedy) {
  ByName by_name;
  for (const NamedTensor& named : saved) by_name.emplace(named.name, named.tensor);
  std::vector<std::string> wrong = mismatches(by_name, targets);
  if (!wrong.empty()) {
    constexpr size_t kShown = 5;
    const size_t hidden = wrong.size() - std::min(wrong.size(), kShown);
    wrong.resize(wrong.size() - hidden);
    throw DataError(fmt::format("{} does not fit: {}{}; {}", what, fmt::join(wrong, ", "),
                                hidden == 0 ? "" : fmt::format(" and {} more", hidden), remedy));
  }
  const torch::NoGradGuard no_grad;
  for (const NamedTensor& target : targets) target.tensor.detach().copy_(by_name.at(target.name));
}

}  // namespace tally::run
