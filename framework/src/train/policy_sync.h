#pragma once

#include "distributed/gradient_buckets.h"

#include <tally/sync_policy.h>

namespace tally::train {

/// The host's services for a sync policy, over the group of the gradients.
class PolicySync final : public Sync {
 public:
  PolicySync(distributed::FlatParameters& parameters, distributed::GradientBuckets& buckets,
             distributed::Group& group)
      : parameters_(parameters), buckets_(buckets), group_(group) {}

  int64_t rank() const override { return group_.rank(); }
  int64_t world() const override { return group_.world(); }
  void arm() override { buckets_.arm(); }
  at::Tensor gradients() override { return parameters_.gradients(); }
  at::Tensor parameters() override { return parameters_.values(); }

  std::unique_ptr<Work> all_reduce(at::Tensor tensor, ReduceOp op) override;
  std::unique_ptr<Work> all_gather(at::Tensor output, at::Tensor input) override;
  std::unique_ptr<Work> reduce_scatter(at::Tensor output, at::Tensor input) override;
  std::unique_ptr<Work> all_to_all(at::Tensor output, at::Tensor input) override;
  std::unique_ptr<Work> broadcast(at::Tensor tensor, int64_t root) override;

 private:
  distributed::FlatParameters& parameters_;
  distributed::GradientBuckets& buckets_;
  distributed::Group& group_;
  int64_t calls_ = 0;
};

}  // namespace tally::train
