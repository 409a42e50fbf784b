#pragma once

#include "distributed/control_record.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

namespace tally::train {

/// What a finished window leaves on the device: read by the loader thread, so that the trainer
/// never waits for it.
struct FinishedReport {
  int64_t window = -1;
  at::Tensor values;  ///< float64 [2 + terms] on the CPU: objective, gradient norm, S of each term.
  std::vector<int64_t> counts;         ///< N of each term on this rank.
  std::shared_ptr<c10::Event> copied;  ///< Recorded after the copy into `values`; null on the CPU.
};

/// The reports of windows on their way from the trainer to the loader, in order.
class FinishedReports {
 public:
  /// `first`: the window that is reported first. `rank` is for errors.
  FinishedReports(int64_t first, int64_t rank, std::chrono::milliseconds timeout);

  /// [trainer]
  void add(FinishedReport report);
  /// Waits for the oldest window that has not been taken, if it is before `end`; nullopt when there
  /// is none, and on a stop. Throws RankError when its values do not come within the timeout.
  /// [loader]
  std::optional<distributed::FinishedWindow> take(int64_t end, const std::stop_token& stop);

 private:
  void wait_for_device(const FinishedReport& report) const;

  int64_t next_;
  int64_t rank_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<FinishedReport> reports_;
};

}  // namespace tally::train
