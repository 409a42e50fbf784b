#pragma once

#include "train/divisor_check.h"
#include "train/loader.h"
#include "train/metrics.h"
#include "train/optimizer.h"
#include "train/rank_session.h"
#include "train/run_evaluation.h"
#include "train/run_state.h"
#include "train/window.h"

#include <exception>
#include <functional>
#include <memory>
#include <optional>

namespace tally::train {

/// Ends this process soon: the trainer may sit in a wait for a lost GPU peer that nothing local can
/// wake.
void end_process_soon(const std::exception_ptr& failure);

struct TrainerOptions {
  /// See WindowParts.
  std::function<void(const Pass& pass, int64_t shard)> after_pass = [](const Pass&, int64_t) {};
  /// Sees each window's gradient after its reduction; returns whether the parameters are updated
  /// with it.
  std::function<bool(int64_t window)> after_reduction = [](int64_t) { return true; };
  /// Runs when all ranks have agreed to stop, before the last exchange. Gets the signal or
  /// kFailedSave, and the number of finished windows.
  std::function<void(int64_t signal, int64_t windows)> on_stop = [](int64_t, int64_t) {};
  /// Runs after each window, when state() counts it as finished; may save. [every rank]
  std::function<void()> after_window = [] {};
  /// Gets each evaluation, and the number of finished windows. [every rank]
  std::function<void(int64_t windows, const Evaluation&)> on_evaluation = [](int64_t,
                                                                             const Evaluation&) {};
  /// Told of each window's metrics when all ranks know them.
  std::function<void(const WindowMetrics&)> on_metrics = [](const WindowMetrics&) {};
  /// Runs on the loader's thread when that has failed, besides the exception that run() throws.
  std::function<void(const std::exception_ptr&)> on_loader_failure = end_process_soon;
  /// The signal that asks this rank to stop, kFailedSave, or 0. [loader]
  std::function<int64_t()> stop_signal = train::stop_signal;
  /// Where rank 0 writes a JSON line a window; nullopt: nowhere.
  std::optional<std::filesystem::path> metrics_file;
};

struct TrainResult {
  int64_t windows = 0;      ///< Finished windows of the run.
  int64_t stop_signal = 0;  ///< Signal that ended it early, kFailedSave, or 0.
  double loss = 0.0;        ///< Of the last window.
  int64_t positions =
      0;  ///< Counted positions of the first term, all ranks and windows of this job.
  double seconds = 0.0;
};

/// The loop: window after window until the data, the range or a signal ends it.
class Trainer {
 public:
  Trainer(RankSession& session, TrainerOptions options);

  /// Runs from the window after those that state() has finished up to, not including, `end`. Once.
  /// [trainer, every rank]
  const TrainResult& run_until(int64_t end);
  const TrainResult& result() const { return result_; }

  RunState& state() { return state_; }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  LoaderOptions loader_options(int64_t end);
  bool is_empty(const PreparedWindow& prepared) const;
  void finish_window(const PreparedWindow& prepared);
  void run_evaluation(const EvaluationPass& pass);
  void run_window(const PreparedWindow& prepared, Loader& loader, double waited);
  void skip_window(const PreparedWindow& prepared, Loader& loader);
  WindowNotes notes_of(const PreparedWindow& prepared, const PhaseTimes& times,
                       double waited) const;
  void take_metrics(const distributed::Agreement& agreement);

  RankSession& session_;
  TrainerOptions options_;
  int64_t divisor_;
  std::unique_ptr<Optimizer> optimizer_;
  distributed::GradientBuckets buckets_;
  PolicySync sync_;
  WindowParts parts_;
  RunState state_;
  MetricsLog metrics_;
  RunEvaluation evaluation_;
  TrainResult result_;
};

}  // namespace tally::train
