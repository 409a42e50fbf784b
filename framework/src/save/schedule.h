#pragma once

#include "files/file_system.h"
#include "run/training_state.h"
#include "save/snapshot.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>

namespace tally::save {

/// Saves after the windows that `[checkpoint]` names, and after the last one of a job. With
/// `checkpoint.async` the writing happens beside training and a second save waits for the first.
class Schedule {
 public:
  Schedule(run::RankSession& session, run::TrainingState& state,
           files::FileSystem& system = files::FileSystem::real());

  /// The run goes on from this step of the folder: it needs not be saved again.
  void starts_at(const std::filesystem::path& step);
  /// After each window. A failed save of it, or of the one before that was written beside training,
  /// is an error or, with checkpoint.on_error = "warn", a line in the log. [trainer, every rank]
  void after_window();
  /// Whether a save beside training has failed that the run must not go on without: all ranks then
  /// stop after the same window, and finish() throws. [any thread]
  bool must_stop() const { return must_stop_; }
  /// Waits for the save under way and saves what was not saved yet. Throws DataError when that
  /// fails, whatever on_error says: nothing comes after that could save again. Returns the last
  /// step's folder. [trainer, every rank]
  std::filesystem::path finish();

 private:
  bool due(int64_t windows) const;
  void begin(bool beside_training);
  void settle();
  void take_result();

  run::RankSession& session_;
  run::TrainingState& state_;
  files::FileSystem& system_;
  int64_t saved_windows_ = -1;
  std::filesystem::path saved_;
  std::atomic<bool> must_stop_{false};
  HostCopies copies_;
  int64_t pending_windows_ = -1;
  std::future<std::filesystem::path>
      pending_;  ///< Its destructor waits for the end of the writing.
};

}  // namespace tally::save
