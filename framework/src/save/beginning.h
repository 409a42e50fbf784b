#pragma once

#include "checkpoint/checkpoint.h"
#include "run/job.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tally::save {

/// What a person wants of the checkpoints that are there.
struct Wish {
  std::string resume;                ///< A step's folder, "latest", or "": a new run.
  std::vector<std::string> allowed;  ///< Keys in which the checkpoint's recipe may differ.
  bool overwrite = false;            ///< The run may take the place of the steps that are there.
};

/// Where a run begins.
struct Beginning {
  std::optional<checkpoint::CheckpointReader> checkpoint;  ///< To go on from; none for a new run.
  bool in_folder = false;                                  ///< It is one of checkpoint.folder.
  checkpoint::Lineage lineage;                             ///< Of what the run saves from here on.
  std::vector<std::string> remarks;  ///< A sentence for each step that was passed over.

  int64_t windows() const { return checkpoint ? checkpoint->window() : 0; }
};

/// A sentence for everything that keeps this job from going on from the checkpoint: values of the
/// recipe that decide windows and are not in `allowed`, the data.
std::vector<std::string> differences(const run::Job& job, const std::string& data_lock,
                                     const checkpoint::CheckpointReader& checkpoint,
                                     const std::vector<std::string>& allowed);

/// Decides where the run begins, and changes nothing. "latest" is the head of the run that was made
/// under this job's conditions, or else of the one run that the job may go on from; an empty folder
/// begins a new run. Throws DataError when the step that was asked for cannot be used, when none
/// can, and when it is not clear which; ConfigError when a run would be mixed with another one: a
/// folder holds steps, and the run neither goes on from one of them nor may overwrite them.
Beginning find_beginning(const run::Job& job, const std::string& data_lock, const Wish& wish);

/// Deletes every step of a folder, for a run that takes its place. [rank 0]
void remove_steps(const std::filesystem::path& folder);

}  // namespace tally::save
