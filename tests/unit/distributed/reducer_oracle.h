#pragma once

#include "distributed/groups.h"
#include "random_model.h"

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tally::distributed {

/// PyTorch's own reduction of gradients, which divides by the world: what ours is compared with.
class ReducerOracle {
 public:
  /// Warms up, since the Reducer reorders its buckets after the first synchronised backward.
  ReducerOracle(std::vector<NamedTensor> parameters, Group& group)
      : parameters_(std::move(parameters)) {
    std::vector<at::Tensor> tensors;
    for (const NamedTensor& named : parameters_) tensors.push_back(named.tensor);
    const std::vector<bool> sparse(tensors.size(), false);
    constexpr int64_t kCap = int64_t{25} << 20;
    auto [buckets, limits] =
        c10d::compute_bucket_assignment_by_size(tensors, {static_cast<size_t>(kCap)}, sparse);
    std::reverse(buckets.begin(), buckets.end());
    reducer_ = std::make_unique<c10d::Reducer>(
        tensors, buckets, group.process_group(), sparse, kCap, /*find_unused_parameters=*/false,
        /*gradient_as_bucket_view=*/true, std::unordered_map<size_t, std::string>{},
        /*first_bucket_bytes_cap=*/kCap, /*skip_all_reduce_unused_params=*/false,
        /*use_python_reducer=*/false, std::vector<int64_t>{});
    reducer_->prepare_for_backward({});
    loss_of_nothing(parameters_).backward();
    reducer_->check_finalized();
    reducer_->rebuild_buckets();
  }

  void clear() {
    for (NamedTensor& named : parameters_) named.tensor.mutable_grad().zero_();
  }
  void arm() { reducer_->prepare_for_backward({}); }
  void finish() { reducer_->check_finalized(); }
  c10d::Reducer& reducer() { return *reducer_; }
  const std::vector<NamedTensor>& parameters() const { return parameters_; }

 private:
  std::vector<NamedTensor> parameters_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

}  // namespace tally::distributed
