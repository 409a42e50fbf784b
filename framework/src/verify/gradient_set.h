#pragma once

#include "digest/sha256.h"

#include <tally/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tally::verify {

/// The gradient of one window from the initial weights.
struct WindowGradient {
  int64_t window = 0;
  std::vector<NamedTensor> total;  ///< By parameter name, as the optimizer would get it.
  /// What each shard contributed to `total`, flat [parameters], in the order of `total`; only where
  /// one rank ran all shards, else empty.
  std::vector<at::Tensor> by_shard;
  std::vector<int64_t> counts_by_rank;  ///< n of the first term on each rank.
};

/// Gradients of the first windows of a run, and what they were computed from.
struct GradientSet {
  std::string recipe;  ///< Name.
  Digest digest;       ///< Of the resolved recipe.
  Digest chain;        ///< Of the drawn windows: equal chains mean equal examples.
  Digest data;         ///< Of the data lock.
  int64_t world = 1;
  int64_t shards = 1;
  int64_t accumulation = 1;  ///< Microbatches of a shard in window 0.
  std::vector<WindowGradient> windows;
};

/// As safetensors: "window-0/NAME" and "window-0/shard-0", the rest as metadata. Throws DataError.
void save_gradients(const std::filesystem::path& file, const GradientSet& set);
GradientSet load_gradients(const std::filesystem::path& file);

}  // namespace tally::verify
