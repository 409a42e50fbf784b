#pragma once

#include "train/optimizer.h"
#include "train/rank_session.h"
#include "train/run_state.h"

#include <filesystem>

namespace tally::train {

/// Saves the run after its last finished window as `checkpoint.folder`/step-NNNN: every rank its
/// own file, rank 0 the rest. Returns the step's folder. Throws DataError. [trainer, every rank]
std::filesystem::path save_checkpoint(RankSession& session, const RunState& run,
                                      Optimizer& optimizer);

}  // namespace tally::train
