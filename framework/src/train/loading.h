#pragma once

#include "run/job.h"
#include "train/evaluation.h"
#include "train/prepared.h"

#include <c10/core/Device.h>

#include <optional>
#include <vector>

namespace tally::train {

struct LoadingOptions {
  size_t terms = 1;
  Digest chain;                    ///< Of the windows before the first one.
  c10::Device device = c10::kCPU;  ///< Batches for a GPU lie in pinned memory.
  /// Run after each settings.evaluate_every windows; nullopt: never.
  std::optional<SplitBatches> evaluation;
};

/// Draws windows and loads what one rank runs of them. Calls the sampler and the task, no other
/// rank. One thread, in the order of the windows. [loader]
class Loading {
 public:
  Loading(const run::Job& job, int64_t rank, int64_t world, LoadingOptions options);

  /// The next window with this rank's part of the record about it; nullopt when no data are left.
  /// Throws PluginError for a plan of another window or of other shards.
  std::optional<PreparedWindow> window(int64_t window, distributed::ControlRecord& record);

  /// Steps of the evaluation before this window, equally many on every rank; 0: none is due.
  int64_t evaluation_steps(int64_t window) const;
  EvaluationPass evaluation(int64_t window, int64_t step) const;

  /// Of all plans so far.
  const Digest& chain() const { return chain_; }

 private:
  distributed::ShardRecord load_shard(int64_t shard, const Shard& microbatches,
                                      std::vector<LoadedPass>& passes) const;
  void pin_for_device(Batch& batch) const;

  const run::Job& job_;
  int64_t rank_;
  int64_t world_;
  LoadingOptions options_;
  Digest chain_;
};

}  // namespace tally::train
