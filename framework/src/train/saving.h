#pragma once

#include "checkpoint/file_system.h"
#include "train/snapshot.h"

#include <filesystem>

namespace tally::train {

/// Writes the snapshot as `checkpoint.folder`/step-NNNN: every rank its own file, rank 0 the rest.
/// With `checkpoint.keep` rank 0 then reads the step back and deletes older ones. Returns the
/// step's folder on all ranks once it is there. Throws DataError on all of them when it is not: the
/// one that failed says why. Uses the state group, so one call at a time. [every rank]
std::filesystem::path write_snapshot(
    RankSession& session, const Snapshot& snapshot,
    checkpoint::FileSystem& system = checkpoint::FileSystem::real());

}  // namespace tally::train
