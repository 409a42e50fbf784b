#pragma once

#include "distributed/control_record.h"
#include "run/job.h"
#include "run/plan_chain.h"
#include "run/stop_request.h"
#include "train/evaluation.h"

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <tally/memory_state.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace tally::train {

/// One microbatch of this rank, on the CPU (pinned when the training device is a GPU).
struct LoadedPass {
  int64_t shard = 0;
  int64_t microbatch = 0;
  Batch batch;
};

/// This rank's batch in one step of an evaluation.
struct EvaluationPass {
  int64_t step = 0;
  int64_t steps = 1;            ///< Equally many on every rank.
  Batch batch;                  ///< On the CPU, pinned as that of a LoadedPass.
  std::vector<int64_t> counts;  ///< N of each term in it.
};

/// A window or a step of an evaluation that is ready to run, or the news that none follows.
struct PreparedWindow {
  distributed::Agreement agreement;
  std::optional<EvaluationPass> evaluation;  ///< Then there is no plan and no pass.
  WindowPlan plan;
  std::vector<LoadedPass> passes;                    ///< This rank's, shard by shard.
  std::shared_ptr<const MemoryState> sampler_state;  ///< After this plan.
  bool last = false;  ///< No data left, the end is reached, or a stop was asked for: not to be run.
};

/// What a finished window leaves on the device: read by the loader thread, so that the trainer
/// never waits for it.
struct FinishedReport {
  int64_t window = -1;
  at::Tensor values;  ///< float64 [2 + terms] on the CPU: objective, gradient norm, S of each term.
  std::vector<int64_t> counts;         ///< N of each term on this rank.
  std::shared_ptr<c10::Event> copied;  ///< Recorded after the copy into `values`; null on the CPU.
};

/// The range of windows of a job.
struct WindowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

struct LoaderOptions {
  size_t terms = 1;
  WindowRange range;
  Digest chain;  ///< Of the windows before range.begin.
  c10::Device device =
      c10::kCPU;  ///< Batches for a GPU lie in pinned memory: nobody waits for the copy.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  ///< run.timeout
  std::function<void(const std::exception_ptr&)> on_failure = [](const std::exception_ptr&) {};
  std::function<int64_t()> stop_signal = run::stop_signal;  ///< Asked once a record.
  /// Run after each settings.evaluate_every windows. A checkpoint is saved before the evaluation,
  /// so a job that begins at such a window begins with it.
  std::optional<SplitBatches> evaluation;
};

/// The loader thread: plans, loads and counts one window ahead of the trainer and exchanges the
/// control record of that window, so that neither disk nor network is waited for between windows.
/// Owns the control group.
///
/// Record k goes out while the trainer runs window k - 1 and carries how window k - 2 went. An
/// evaluation between two windows is cut into steps with a record each, so that a stop does not
/// wait for its end. After the last window one more exchange carries how that one went. Calls are
/// the trainer's; an exception of the thread leaves from the next of them.
class Loader {
 public:
  /// `on_failure` runs on the loader thread when it fails, besides the exception that the trainer
  /// gets.
  Loader(const run::Job& job, distributed::Group& control, LoaderOptions options);
  ~Loader();

  /// Waits for the next window, which is at most `ahead` of the trainer.
  PreparedWindow next();
  /// The window that next() gave last has run. Every window that is not `last` must be reported
  /// before the next one comes.
  void finished(FinishedReport report);
  /// After a `last` window: how the window before it went, on all ranks.
  distributed::Agreement final_exchange();

 private:
  /// What one record is about.
  struct Item {
    PreparedWindow prepared;
    distributed::ControlRecord record;
    int64_t reported = 0;  ///< The trainer has run all windows before this one when it goes out.
  };

  void work(const std::stop_token& stop);
  Item window_item(int64_t window);
  Item evaluation_item(int64_t window, int64_t step);
  int64_t evaluation_steps(int64_t window) const;
  /// Exchanges the record and hands the item over. Returns whether more is to come.
  bool offer(Item item, const std::stop_token& stop);
  void close(int64_t window, const std::stop_token& stop);
  void plan_next(int64_t window, PreparedWindow& prepared);
  void load_shards(const WindowPlan& plan, PreparedWindow& prepared,
                   distributed::ControlRecord& record);
  void wait_for_room(const std::stop_token& stop);
  /// The oldest window that has not been reported, if it is before `end`.
  std::optional<distributed::FinishedWindow> next_report(int64_t end, const std::stop_token& stop);
  void wait_for_device(const FinishedReport& report) const;
  void hand_over(PreparedWindow prepared);
  void pin_for_device(Batch& batch) const;

  const run::Job& job_;
  distributed::ControlChannel channel_;
  int64_t rank_;
  int64_t world_;
  LoaderOptions options_;
  Digest chain_;
  int64_t next_report_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<PreparedWindow> ready_;
  std::deque<FinishedReport> reports_;
  std::optional<distributed::Agreement> final_;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace tally::train
