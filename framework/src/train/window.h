#pragma once

#include "distributed/board.h"
#include "distributed/gradient_buckets.h"
#include "train/job.h"
#include "train/loader.h"
#include "train/optimizer.h"
#include "train/policy_sync.h"

#include <c10/core/Device.h>

#include <functional>
#include <vector>

namespace tally::train {

/// Host time of each phase of a window, seconds. On a GPU the work itself runs on beside.
struct PhaseTimes {
  double forward = 0.0;
  double backward = 0.0;
  double reduce = 0.0;  ///< Waiting for the reduction after the last backward.
  double update = 0.0;
};

struct WindowOutcome {
  FinishedReport report;
  std::vector<double> scales;  ///< Of each term.
  PhaseTimes times;
};

/// What a window works on. Refers to objects that outlive it.
struct WindowParts {
  const Job& job;
  const std::vector<TermInfo>& terms;
  distributed::FlatParameters& parameters;
  distributed::GradientBuckets& buckets;
  PolicySync& sync;
  Optimizer& optimizer;
  distributed::BoardWriter& board;
  c10::Device device;
  int64_t divisor = 1;
  /// Sees the gradient accumulated so far, after each backward and, in the armed one, its
  /// reduction. `shard`: of the pass, or -1 for one of no shard.
  std::function<void(const Pass& pass, int64_t shard)> after_pass = [](const Pass&, int64_t) {};
  /// Sees the window's gradient after its reduction, before clipping; returns whether the
  /// parameters are updated with it.
  std::function<bool(int64_t window)> after_reduction = [](int64_t) { return true; };
};

/// Runs one window in numbered phases: every pass forward and backward, the reduction, judgement,
/// update.
class Window {
 public:
  Window(WindowParts& parts, const PreparedWindow& prepared);
  WindowOutcome run();

 private:
  /// The passes in order; null for one that only keeps the ranks' numbers equal.
  std::vector<const LoadedPass*> steps() const;
  void scale();
  void run_pass(const Pass& pass, const LoadedPass* loaded);
  at::Tensor forward(const LoadedPass& loaded);
  at::Tensor judge();
  void update(const at::Tensor& norm);
  void report(const at::Tensor& norm);

  WindowParts& parts_;
  const PreparedWindow& prepared_;
  WindowOutcome outcome_;
  at::Tensor scales_;     ///< [terms], the parameters' dtype and device.
  at::Tensor objective_;  ///< float64 scalar on the device: sum of what the reducer returned.
  at::Tensor sums_;       ///< float64 [terms] on the device.
};

/// A loss that reaches every parameter with an exactly zero gradient, also where a parameter is Inf
/// or NaN.
at::Tensor zero_loss(const distributed::FlatParameters& parameters);

}  // namespace tally::train
