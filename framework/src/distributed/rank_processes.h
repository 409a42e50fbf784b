#pragma once

#include "distributed/launcher.h"

#include <csignal>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace tally::distributed {

/// How a rank's process ended.
struct RankEnd {
  int64_t rank = 0;
  int exit_code = 0;
  int signal = 0;                   ///< That ended it, or 0.
  bool killed_by_launcher = false;  ///< It did not end by itself in time.
};

/// The processes of the ranks that one launch started, each in a process group of its own, so that
/// a terminal's Ctrl-C reaches the launcher alone.
class RankProcesses {
 public:
  /// Starts them. Throws DataError when a log file cannot be made, RankError when a process cannot
  /// be started; those already started are killed.
  RankProcesses(const LaunchPlan& plan, const Board& board, uint16_t port, const sigset_t& mask);
  ~RankProcesses();

  int64_t running() const { return running_; }
  /// Takes note of those that ended, in the order in which they are found.
  void reap();
  void signal_running(int signal);
  void kill_running();

  /// The rank that failed first: ended by a signal, or by an exit code that is neither 0 nor that
  /// of an agreed stop.
  std::optional<int64_t> first_failure() const { return first_failure_; }
  /// Of ranks none of which failed.
  int common_exit_code() const;
  const RankEnd& end_of(int64_t rank) const { return ends_[static_cast<size_t>(rank)]; }

 private:
  pid_t start(const LaunchPlan& plan, int64_t rank, const Board& board, uint16_t port,
              const sigset_t& mask);
  void note(size_t rank, int status);

  std::vector<pid_t> pids_;  ///< 0 once reaped.
  std::vector<RankEnd> ends_;
  int64_t running_ = 0;
  std::optional<int64_t> first_failure_;
};

}  // namespace tally::distributed
