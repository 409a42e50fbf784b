#pragma once

#include "train/finished_reports.h"
#include "train/loading.h"
#include "train/prepared.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace tally::train {

/// The range of windows of a job.
struct WindowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

struct LoaderOptions {
  LoadingOptions loading;
  WindowRange range;
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  ///< run.timeout
  /// Runs on the loader's thread when it fails, besides the exception that the trainer gets.
  std::function<void(const std::exception_ptr&)> on_failure = [](const std::exception_ptr&) {};
  /// Asked once a record.
  std::function<distributed::Stop()> stop = [] { return distributed::Stop{}; };
};

/// The loader thread: plans, loads and counts ahead of the trainer and exchanges the control record
/// of each window, so that neither disk nor network is waited for between windows. Owns the control
/// group.
///
/// Record k goes out while the trainer runs window k - 1 and carries how window k - 2 went. An
/// evaluation between two windows is cut into steps with a record each, so that a stop does not
/// wait for its end; a checkpoint is saved before it, so a job that begins at such a window begins
/// with it. After the last window one more exchange carries how that one went. Calls are the
/// trainer's; an exception of the thread leaves from the next of them.
class Loader {
 public:
  Loader(const run::Job& job, distributed::Group& control, LoaderOptions options);
  ~Loader();

  /// Waits for what comes next. At most two of them are ready before they are asked for.
  Prepared next();
  /// The window that next() gave last has run. Every window must be reported before the next one
  /// comes.
  void finished(FinishedReport report);
  /// After the EndOfRun: how the window before it went, on all ranks.
  distributed::Agreement final_exchange();

 private:
  void work(const std::stop_token& stop);
  Prepared window(int64_t window, distributed::ControlRecord& record);
  Prepared evaluation(int64_t window, int64_t step, distributed::ControlRecord& record);
  /// Exchanges the record, with how the windows before `reported` went, and hands over. Returns
  /// whether more is to come.
  bool offer(Prepared prepared, distributed::ControlRecord record, int64_t reported,
             const std::stop_token& stop);
  void close(int64_t window, const std::stop_token& stop);
  void wait_for_room(const std::stop_token& stop);
  void hand_over(Prepared prepared);

  distributed::ControlChannel channel_;
  int64_t rank_;
  LoaderOptions options_;
  Loading loading_;
  FinishedReports reports_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Prepared> ready_;
  std::optional<distributed::Agreement> final_;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace tally::train
