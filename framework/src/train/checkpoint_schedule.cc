#include "train/checkpoint_schedule.h"

#include "checkpoint/checkpoint.h"
#include "log/log.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <algorithm>

namespace tally::train {

bool CheckpointSchedule::due(int64_t windows) const {
  const Settings& settings = session_.job().settings;
  const std::vector<int64_t>& at = settings.checkpoint_at;
  return (settings.checkpoint_every > 0 && windows % settings.checkpoint_every == 0) ||
         std::find(at.begin(), at.end(), windows) != at.end();
}

void CheckpointSchedule::after_window() {
  if (!due(trainer_.state().windows())) return;
  try {
    save();
  } catch (const DataError& error) {
    if (!session_.job().settings.warn_on_failed_checkpoint) throw;
    log::warning(fmt::format("training goes on without this checkpoint: {}", error.what()));
  }
}

std::filesystem::path CheckpointSchedule::finish() {
  if (saved_windows_ != trainer_.state().windows()) save();
  return saved_;
}

void CheckpointSchedule::save() {
  saved_ = save_checkpoint(session_, trainer_.state(), trainer_.optimizer());
  saved_windows_ = trainer_.state().windows();
  if (session_.rank() == 0 && session_.job().settings.checkpoint_keep > 0) remove_old();
}

void CheckpointSchedule::remove_old() const {
  checkpoint::CheckpointReader::open(saved_);  // an older one goes only after this one verified
  const auto steps = checkpoint::list_steps(session_.job().settings.checkpoint_folder);
  for (size_t i = static_cast<size_t>(session_.job().settings.checkpoint_keep); i < steps.size();
       ++i) {
    std::error_code error;
    std::filesystem::remove_all(steps[i], error);
    if (error)
      log::warning(fmt::format("cannot delete the old checkpoint {}: {}", steps[i].string(),
                               error.message()));
  }
}

}  // namespace tally::train
