#pragma once

#include "train/divisor_check.h"
#include "train/loader.h"
#include "train/metrics.h"
#include "train/optimizer.h"
#include "train/rank_session.h"
#include "train/run_state.h"
#include "train/window.h"

#include <functional>
#include <memory>
#include <optional>

namespace tally::train {

struct TrainerOptions {
  WindowRange range;
  /// See WindowParts.
  std::function<void(const Pass& pass, int64_t shard)> after_pass = [](const Pass&, int64_t) {};
  /// Sees each window's gradient after its reduction; returns whether the parameters are updated
  /// with it.
  std::function<bool(int64_t window)> after_reduction = [](int64_t) { return true; };
  /// Told of each window's metrics when all ranks know them.
  std::function<void(const WindowMetrics&)> on_metrics = [](const WindowMetrics&) {};
  /// Where rank 0 writes a JSON line a window; nullopt: nowhere.
  std::optional<std::filesystem::path> metrics_file;
};

struct TrainResult {
  int64_t windows = 0;      ///< Finished windows of the run.
  int64_t stop_signal = 0;  ///< Signal that ended it early, or 0.
  double loss = 0.0;        ///< Of the last window.
  int64_t positions =
      0;  ///< Counted positions of the first term, all ranks and windows of this job.
  double seconds = 0.0;
};

/// The loop: window after window until the data, the range or a signal ends it.
class Trainer {
 public:
  Trainer(RankSession& session, TrainerOptions options);

  /// [trainer, every rank]
  TrainResult run();

  RunState& state() { return state_; }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  LoaderOptions loader_options() const;
  bool is_empty(const PreparedWindow& prepared) const;
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
  TrainResult result_;
};

}  // namespace tally::train
