#pragma once

#include "distributed/stop.h"
#include "train/evaluation.h"

#include <tally/types.h>

#include <cstdint>

namespace tally::train {

struct WindowMetrics;

/// Follows the windows of a run. The calls come from the trainer's thread: in a window after_pass
/// for each pass and after_reduction; when a later window is about to start, on_metrics of the
/// windows that all ranks have heard of by then; between windows on_evaluation; at the end on_stop.
class Observer {
 public:
  virtual ~Observer() = default;

  /// Sees the gradient accumulated so far, after each backward and, in the armed one, its
  /// reduction. [every rank]
  virtual void after_pass(const Pass& /*pass*/) {}
  /// Sees each window's gradient after its reduction, before clipping; returns whether the
  /// parameters are updated with it. [every rank]
  virtual bool after_reduction(int64_t /*window*/) { return true; }
  /// Told of each window's metrics when all ranks know them. [every rank]
  virtual void on_metrics(const WindowMetrics& /*metrics*/) {}
  /// Gets each evaluation, and the number of finished windows. [every rank]
  virtual void on_evaluation(int64_t /*windows*/, const Evaluation& /*evaluation*/) {}
  /// All ranks have agreed to stop, and the last exchange is to come. Gets the number of finished
  /// windows. [every rank]
  virtual void on_stop(const distributed::Stop& /*stop*/, int64_t /*windows*/) {}
};

}  // namespace tally::train
