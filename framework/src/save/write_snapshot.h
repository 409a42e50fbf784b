#pragma once

#include "files/file_system.h"
#include "save/snapshot.h"

#include <filesystem>

namespace tally::save {

/// Writes the snapshot as `checkpoint.folder`/step-NNNN: every rank its own file, rank 0 the rest.
/// With `checkpoint.keep` rank 0 then reads the step back and deletes older ones. Returns the
/// step's folder on all ranks once it is there. Throws DataError on all of them when it is not: the
/// one that failed says why. Uses the state group, so one call at a time. [every rank]
std::filesystem::path write_snapshot(run::RankSession& session, const Snapshot& snapshot,
                                     files::FileSystem& system = files::FileSystem::real());

}  // namespace tally::save
