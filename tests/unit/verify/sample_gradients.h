#pragma once

#include "verify/gradient_set.h"

#include <torch/torch.h>

#include <vector>

namespace tally::verify {

/// Two parameters, four shards with unlike gradients, small whole numbers. The sum over shards is
/// the total, as one rank over all shards gives it.
inline std::vector<at::Tensor> sample_shards() {
  return {at::tensor({1.0F, -2.0F, 3.0F, 0.0F, 5.0F}), at::tensor({2.0F, 1.0F, 0.0F, -4.0F, 1.0F}),
          at::tensor({0.0F, 3.0F, 1.0F, 2.0F, -1.0F}), at::tensor({4.0F, 0.0F, -1.0F, 1.0F, 2.0F})};
}

inline GradientSet gradients_of(const std::string& recipe, const at::Tensor& flat) {
  GradientSet set;
  set.recipe = recipe;
  set.world = 2;
  set.shards = 4;
  set.accumulation = 5;  // unlike W, so that the two cannot be mistaken for each other
  WindowGradient window;
  window.total = {{"weight", flat.narrow(0, 0, 4).view({2, 2})}, {"bias", flat.narrow(0, 4, 1)}};
  window.counts_by_rank = {12, 36};
  set.windows.push_back(window);
  return set;
}

inline at::Tensor sample_total() { return at::stack(sample_shards()).sum(0); }

inline GradientSet sample_reference() {
  GradientSet set = gradients_of("reference", sample_total());
  set.world = 1;
  set.windows.front().by_shard = sample_shards();
  return set;
}

}  // namespace tally::verify
