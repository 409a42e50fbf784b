#pragma once

#include "distributed/control_record.h"

#include <tally/memory_state.h>
#include <tally/sampler.h>
#include <tally/task.h>

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

/// What the loader hands to the trainer.
namespace tally::train {

/// One microbatch of this rank, on the CPU (pinned when the training device is a GPU).
struct LoadedPass {
  int64_t shard = 0;
  int64_t microbatch = 0;
  Batch batch;
};

struct PreparedWindow {
  WindowPlan plan;
  std::vector<LoadedPass> passes;                    ///< This rank's, shard by shard.
  std::shared_ptr<const MemoryState> sampler_state;  ///< After this plan.
};

/// This rank's batch in one step of an evaluation.
struct EvaluationPass {
  int64_t step = 0;
  int64_t steps = 1;            ///< Equally many on every rank.
  Batch batch;                  ///< On the CPU, pinned as that of a LoadedPass.
  std::vector<int64_t> counts;  ///< N of each term in it.
};

/// Nothing follows: no data left, the end is reached, or a stop was asked for.
struct EndOfRun {};

/// What to do next, and what all ranks agreed on when it was announced.
struct Prepared {
  distributed::Agreement agreement;
  std::variant<EndOfRun, PreparedWindow, EvaluationPass> work;
};

}  // namespace tally::train
