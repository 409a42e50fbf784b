#pragma once

#include "run/rank_session.h"
#include "run/stop_request.h"
#include "run/training_state.h"
#include "save/schedule.h"
#include "train/evaluation_steps.h"
#include "train/loader.h"
#include "train/metrics.h"
#include "train/observer.h"
#include "train/window.h"

#include <exception>
#include <filesystem>
#include <functional>
#include <optional>

namespace tally::train {

/// Ends this process soon: the trainer may sit in a wait for a lost GPU peer that nothing local can
/// wake.
void end_process_soon(const std::exception_ptr& failure);

struct TrainerOptions {
  /// Runs on the loader's thread when that has failed, besides the exception that run_until()
  /// throws.
  std::function<void(const std::exception_ptr&)> on_loader_failure = end_process_soon;
  /// The signal that asks this rank to stop, or 0. [loader]
  std::function<int64_t()> stop_signal = run::stop_signal;
  /// Where rank 0 writes a JSON line a window; nullopt: nowhere.
  std::optional<std::filesystem::path> metrics_file;
  /// Saves after the windows that it names, and may ask for a stop; null: nothing is saved.
  /// Outlives the trainer.
  save::Schedule* saving = nullptr;
};

struct TrainResult {
  int64_t windows = 0;     ///< Finished windows of the run.
  distributed::Stop stop;  ///< What ended it early.
  /// Of the last window of this job that had one; nullopt when none had: nothing was left to do, or
  /// every window was skipped.
  std::optional<double> loss;
  int64_t skipped = 0;  ///< Windows of this job without any supervised position.
  /// Counted positions of the first term, all ranks and windows of this job.
  int64_t positions = 0;
  double seconds = 0.0;
};

/// The loop: window after window until the data, the range or a signal ends it.
class Trainer {
 public:
  /// `divisor`: what the policy divides by, see measure_divisor(). All of them outlive the trainer.
  Trainer(run::RankSession& session, run::TrainingState& state, int64_t divisor, Observer& observer,
          TrainerOptions options);

  /// Runs from the window after those that the state has finished up to, not including, `end`.
  /// Once. [trainer, every rank]
  const TrainResult& run_until(int64_t end);
  const TrainResult& result() const { return result_; }

 private:
  LoaderOptions loader_options(int64_t end);
  static bool is_empty(const distributed::Agreement& agreement);
  void run_or_skip(const PreparedWindow& prepared, const distributed::Agreement& agreement,
                   Loader& loader, double waited);
  void finish_window(const PreparedWindow& prepared);
  void evaluate(const EvaluationPass& pass);
  void run_window(const PreparedWindow& prepared, const distributed::Agreement& agreement,
                  Loader& loader, double waited);
  void skip_window(int64_t window, const distributed::Agreement& agreement, Loader& loader);
  WindowNotes notes_of(const distributed::Agreement& agreement, const PhaseTimes& times,
                       double waited) const;
  void take_metrics(const distributed::Agreement& agreement);

  run::RankSession& session_;
  run::TrainingState& state_;
  Observer& observer_;
  TrainerOptions options_;
  int64_t divisor_;
  distributed::GradientBuckets buckets_;
  PolicySync sync_;
  WindowParts parts_;
  MetricsLog metrics_;
  EvaluationSteps evaluation_;
  TrainResult result_;
};

}  // namespace tally::train
