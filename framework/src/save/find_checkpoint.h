#pragma once

#include "checkpoint/checkpoint.h"
#include "run/job.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tally::save {

/// A sentence for everything that keeps this job from going on from the checkpoint: values of the
/// recipe, the data. Not compared are train.updates, train.stop_at, checkpoint.*, run.timeout,
/// run.ranks and the keys in `allowed`.
std::vector<std::string> differences(const run::Job& job, const std::string& data_lock,
                                     const checkpoint::CheckpointReader& checkpoint,
                                     const std::vector<std::string>& allowed);

/// The checkpoint to go on from. `wish`: a step's folder, or "latest": the newest in
/// checkpoint.folder that is whole and belongs to this recipe and data; nullopt when there is none.
/// `remarks` gets a sentence for each newer one that was passed over. Throws DataError when the
/// step that was asked for cannot be used, and when there are only damaged ones.
std::optional<std::filesystem::path> find_checkpoint(const run::Job& job,
                                                     const std::string& data_lock,
                                                     const std::string& wish,
                                                     const std::vector<std::string>& allowed,
                                                     std::vector<std::string>& remarks);

}  // namespace tally::save
