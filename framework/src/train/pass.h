#pragma once

#include "distributed/board.h"
#include "distributed/gradient_buckets.h"
#include "plugin/hooked.h"
#include "train/policy_sync.h"

#include <tally/sync_policy.h>

#include <functional>

namespace tally::train {

/// Host time of each phase of a window, seconds. On a GPU the work itself runs on beside.
struct PhaseTimes {
  double forward = 0.0;
  double backward = 0.0;
  double reduce = 0.0;  ///< Waiting for the reduction after the last backward.
  double update = 0.0;
};

/// What every pass runs with. Refers to objects that outlive it.
struct PassParts {
  const plugin::Hooked<SyncPolicy>& policy;
  PolicySync& sync;
  distributed::GradientBuckets& buckets;
  distributed::BoardWriter& board;
};

/// Runs one pass in the order that a policy sees: before_forward, `forward`, before_backward, the
/// backward of the scalar that `forward` returned, the reduction of an armed pass, after_backward.
/// Adds to `times`. [trainer]
void run_pass(PassParts& parts, const Pass& pass, const std::function<at::Tensor()>& forward,
              PhaseTimes& times);

}  // namespace tally::train
