#pragma once

#include <tally/types.h>

#include <vector>

namespace tally::distributed {

/// The trained parameters as slices of one flat tensor, in reverse parameter order: backward
/// finishes the last parameters first, so the front of the flat tensors is ready first. Storage and
/// layout stay for the whole run.
class FlatParameters {
 public:
  /// Moves every parameter's storage into a flat tensor and gives it a gradient that is a slice of
  /// another, zero at first. Throws PluginError for no parameter at all, one that is listed twice,
  /// is no leaf, does not require a gradient, or has another dtype or device than the first.
  explicit FlatParameters(std::vector<NamedTensor> parameters);

  /// [parameters] each.
  const at::Tensor& values() const { return values_; }
  const at::Tensor& gradients() const { return gradients_; }

  /// As the task listed them.
  const std::vector<NamedTensor>& named() const { return named_; }
  /// Where parameter i lies in the flat tensors.
  int64_t offset(size_t i) const { return offsets_[i]; }
  /// The gradients under the parameters' names and shapes: views.
  std::vector<NamedTensor> named_gradients() const;
  /// The same of any flat tensor with the layout of values(), such as a copy of it.
  std::vector<NamedTensor> named_slices(const at::Tensor& flat) const;

  /// Zero in place. Throws PluginError when a gradient is no longer the slice it was: somebody
  /// replaced it instead of accumulating into it.
  void clear_gradients();

 private:
  std::vector<NamedTensor> named_;
  std::vector<int64_t> offsets_;
  at::Tensor values_;
  at::Tensor gradients_;
};

}  // namespace tally::distributed
