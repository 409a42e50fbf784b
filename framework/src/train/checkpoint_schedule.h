#pragma once

#include "train/saving.h"
#include "train/trainer.h"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tally::train {

/// Saves after the windows that `[checkpoint]` names, and after the last one of a job; keeps as
/// many steps as `checkpoint.keep` says.
class CheckpointSchedule {
 public:
  CheckpointSchedule(RankSession& session, Trainer& trainer)
      : session_(session), trainer_(trainer) {}

  /// After each window. A failed save is an error or, with checkpoint.on_error = "warn", a line in
  /// the log. [every rank]
  void after_window();
  /// Saves what was not saved yet. Throws DataError whatever on_error says: nothing comes after
  /// that could save again. Returns the last step's folder. [every rank]
  std::filesystem::path finish();

 private:
  bool due(int64_t windows) const;
  void save();
  void remove_old() const;

  RankSession& session_;
  Trainer& trainer_;
  int64_t saved_windows_ = -1;
  std::filesystem::path saved_;
};

}  // namespace tally::train
