#pragma once

#include "checkpoint/checkpoint.h"
#include "train/optimizer.h"
#include "train/rank_session.h"
#include "train/run_state.h"

#include <exception>
#include <optional>

namespace tally::train {

/// What one rank saves of the run after its last finished window.
struct Snapshot {
  int64_t windows = 0;  ///< Finished ones.
  checkpoint::StateBundle states;
  std::optional<checkpoint::CheckpointContent> content;  ///< On rank 0.
  std::exception_ptr failure;  ///< Why it is not whole: every rank hears of it when it is written.
};

enum class Values {
  kCopied,  ///< The snapshot stays as it is while training goes on.
  kShared,  ///< Of tensors on the CPU only views are taken: until the next window changes them.
};

/// All tensors are on the CPU; those of a GPU are copied in any case, and waited for. [trainer,
/// every rank]
Snapshot take_snapshot(RankSession& session, const RunState& run, Optimizer& optimizer,
                       Values values);

}  // namespace tally::train
