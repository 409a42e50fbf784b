#pragma once

#include "digest/sha256.h"

#include <tally/types.h>

#include <deque>

namespace tally::run {

/// h_k = SHA-256(h_(k-1), plan k as little-endian int64: window, shards; of each shard its
/// microbatches; of each microbatch its size and ids). h_(-1) is all zero. Equal chains mean equal
/// plans, from window 0 on.
Digest chain(const Digest& previous, const WindowPlan& plan);

/// The windows that a run has drawn and finished.
struct WindowHistory {
  static constexpr size_t kKept = 64;

  int64_t windows = 0;
  Digest chain;
  std::deque<WindowPlan> last;  ///< At most kKept, oldest first.

  void append(const WindowPlan& plan);
};

}  // namespace tally::run
