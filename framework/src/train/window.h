#pragma once

#include "distributed/flat_parameters.h"
#include "run/job.h"
#include "run/optimizer.h"
#include "train/finished_reports.h"
#include "train/observer.h"
#include "train/pass.h"
#include "train/prepared.h"

#include <c10/core/Device.h>

#include <vector>

namespace tally::train {

struct WindowOutcome {
  FinishedReport report;
  std::vector<double> scales;  ///< Of each term.
  PhaseTimes times;
};

/// What a window works on. Refers to objects that outlive it.
struct WindowParts {
  const run::Job& job;
  const std::vector<TermInfo>& terms;
  distributed::FlatParameters& parameters;
  distributed::GradientBuckets& buckets;
  PolicySync& sync;
  run::Optimizer& optimizer;
  distributed::BoardWriter& board;
  c10::Device device;
  int64_t divisor = 1;
  Observer& observer;
};

/// Runs one window in numbered phases: every pass forward and backward, the reduction, judgement,
/// update.
class Window {
 public:
  /// All three outlive it.
  Window(WindowParts& parts, const PreparedWindow& prepared,
         const distributed::Agreement& agreement);
  WindowOutcome run();

 private:
  /// What one pass runs; nothing loaded for one that only keeps the ranks' numbers equal.
  struct Step {
    Pass pass;
    const LoadedPass* loaded = nullptr;
  };
  /// The passes in order.
  std::vector<Step> steps() const;
  void scale();
  at::Tensor loss_of(const Step& step);
  at::Tensor forward(const LoadedPass& loaded);
  at::Tensor judge();
  void update(const at::Tensor& norm);
  void report(const at::Tensor& norm);

  WindowParts& parts_;
  const PreparedWindow& prepared_;
  const distributed::Agreement& agreement_;
  WindowOutcome outcome_;
  at::Tensor scales_;     ///< [terms], the parameters' dtype and device.
  at::Tensor objective_;  ///< float64 scalar on the device: sum of what the reducer returned.
  at::Tensor sums_;       ///< float64 [terms] on the device.
};

/// A loss that reaches every parameter with an exactly zero gradient, also where a parameter is Inf
/// or NaN.
at::Tensor zero_loss(const distributed::FlatParameters& parameters);

}  // namespace tally::train
