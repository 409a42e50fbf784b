#pragma once

#include "checkpoint/checkpoint.h"
#include "run/training_state.h"

namespace tally::save {

/// Puts the run back to the end of the checkpoint's last window: model, optimizer, and what the
/// recipe's providers saved. Throws DataError for a state that does not fit. Before the first
/// window of this job. [trainer, every rank]
void restore(run::RankSession& session, run::TrainingState& state,
             const checkpoint::CheckpointReader& checkpoint);

}  // namespace tally::save
