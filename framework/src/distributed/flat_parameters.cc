#include "distributed/flat_parameters.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <set>
#include <sstream>

namespace tally::distributed {
namespace {

std::string text_of(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.dtype() << " on " << tensor.device();
  return text.str();
}

void check(const NamedTensor& parameter, const at::Tensor& first, std::set<const void*>& seen) {
  const at::Tensor& tensor = parameter.tensor;
  const auto reject = [&](const std::string& why) {
    throw PluginError(fmt::format("the task's parameter '{}' {}; list every trained leaf once",
                                  parameter.name, why));
  };
  if (!tensor.defined()) reject("is undefined");
  if (!tensor.is_leaf()) reject("is no leaf of the graph");
  if (!tensor.requires_grad()) reject("does not require a gradient");
  if (!seen.insert(tensor.unsafeGetTensorImpl()).second) reject("is listed twice");
  if (!first.defined()) return;  // rejected when its turn comes
  if (tensor.dtype() != first.dtype() || tensor.device() != first.device()) {
    reject(fmt::format("is {}, but the first is {}", text_of(tensor), text_of(first)));
  }
}

}  // namespace

FlatParameters::FlatParameters(std::vector<NamedTensor> parameters)
    : named_(std::move(parameters)) {
  if (named_.empty()) throw PluginError("the task lists no parameter to train");
  std::set<const void*> seen;
  int64_t size = 0;
  offsets_.resize(named_.size());
  for (size_t i = named_.size(); i-- > 0;) {
    check(named_[i], named_.front().tensor, seen);
    offsets_[i] = size;
    size += named_[i].tensor.numel();
  }
  const torch::NoGradGuard no_grad;
  const auto options = named_.front().tensor.detach().options();
  values_ = at::empty({size}, options);
  gradients_ = at::zeros({size}, options);
  for (size_t i = 0; i < named_.size(); ++i) {
    at::Tensor& parameter = named_[i].tensor;
    const at::Tensor slice =
        values_.narrow(0, offsets_[i], parameter.numel()).view(parameter.sizes());
    slice.copy_(parameter);
    parameter.set_data(slice);
    parameter.mutable_grad() =
        gradients_.narrow(0, offsets_[i], parameter.numel()).view(parameter.sizes());
  }
}

std::vector<NamedTensor> FlatParameters::named_gradients() const {
  std::vector<NamedTensor> result;
  for (const NamedTensor& parameter : named_)
    result.push_back({parameter.name, parameter.tensor.grad()});
  return result;
}

std::vector<NamedTensor> FlatParameters::named_slices(const at::Tensor& flat) const {
  std::vector<NamedTensor> result;
  for (size_t i = 0; i < named_.size(); ++i) {
    const at::Tensor& parameter = named_[i].tensor;
    result.push_back(
        {named_[i].name, flat.narrow(0, offsets_[i], parameter.numel()).view(parameter.sizes())});
  }
  return result;
}

void FlatParameters::clear_gradients() {
  const auto* base = static_cast<const char*>(gradients_.data_ptr());
  for (size_t i = 0; i < named_.size(); ++i) {
    const at::Tensor& gradient = named_[i].tensor.grad();
    const auto place = offsets_[i] * static_cast<int64_t>(gradients_.element_size());
    if (!gradient.defined() || gradient.data_ptr() != base + place) {
      throw PluginError(
          fmt::format("the gradient of parameter '{}' was replaced; accumulate into it, and leave "
                      "clearing to the host",
                      named_[i].name));
    }
  }
  gradients_.zero_();
}

}  // namespace tally::distributed
