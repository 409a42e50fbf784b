#pragma once

#include "run/training_state.h"

#include <filesystem>
#include <string>

namespace tally::verify {

/// Everything of a rank that decides how a run goes on, as digests: what resume-check compares,
/// whatever the recipe's providers saved of it. Writes FOLDER/rank-K.json: parameters, optimizer,
/// random state of the CPU and of the GPU, and the ids drawn for each of the last windows. [every
/// rank]
void write_fingerprint(run::RankSession& session, run::TrainingState& state,
                       const std::filesystem::path& folder);

/// Names of what differs between two folders of fingerprints, rank by rank, over the windows that
/// both know: "rank 1: the CPU's random state". Throws DataError when one cannot be read.
std::vector<std::string> fingerprint_differences(const std::filesystem::path& a,
                                                 const std::filesystem::path& b, int64_t world);

}  // namespace tally::verify
