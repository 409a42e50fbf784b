#include "distributed/launcher.h"

#include "distributed/rank_processes.h"
#include "distributed/store_server.h"
#include "process/exit_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <optional>

namespace tally::distributed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTick{100};
/// The same signal again within this time is the same request.
constexpr std::chrono::milliseconds kOneStop{200};
/// After the first failure: long enough for a rank to notice a closed connection and to write its
/// sentence, or for a checkpoint's last file.
constexpr std::chrono::seconds kSurvivorGrace{6};

/// Blocks the launcher's signals while it exists, so that they can be waited for.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
    stops_ = before_;
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&stops_, signal);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  /// For the children.
  const sigset_t& mask(bool stops_blocked) const { return stops_blocked ? stops_ : before_; }

  /// A signal that arrived within a tick, or 0.
  int wait() const {
    const timespec tick{0, std::chrono::duration_cast<std::chrono::nanoseconds>(kTick).count()};
    const int signal = ::sigtimedwait(&set_, nullptr, &tick);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t set_;
  sigset_t before_;
  sigset_t stops_;
};

class Launch {
 public:
  explicit Launch(const LaunchPlan& plan)
      : plan_(plan),
        board_(Board::create_inherited(plan.ranks)),
        server_(plan.timeout),
        processes_(plan, *board_, server_.port(), signals_.mask(plan.ranks_unblock_stops)) {}

  LaunchOutcome run() {
    while (processes_.running() > 0) {
      const int signal = signals_.wait();
      processes_.reap();
      if (signal != 0 && signal != SIGCHLD) forward(signal);
      plan_.on_progress(*board_);
      end_survivors();
      end_late_stop();
    }
    return outcome();
  }

 private:
  void forward(int signal) {
    // A service manager, or timeout(1), signals a program and then its whole group.
    if (signal == stop_signal_ && Clock::now() - stop_time_ < kOneStop) return;
    if (stop_signal_) {
      ended_at_once_ = true;
      processes_.kill_running();
      return;
    }
    stop_signal_ = signal;
    stop_time_ = Clock::now();
    stop_deadline_ = stop_time_ + plan_.stop_grace;
    processes_.signal_running(signal);
  }

  void end_survivors() {
    if (!processes_.first_failure() || processes_.running() == 0) return;
    if (!deadline_) deadline_ = Clock::now() + kSurvivorGrace;
    if (Clock::now() >= *deadline_) processes_.kill_running();
  }

  void end_late_stop() {
    if (!stop_deadline_ || processes_.running() == 0 || Clock::now() < *stop_deadline_) return;
    stop_was_late_ = true;
    processes_.kill_running();
  }

  LaunchOutcome late_stop() const {
    return {process::kRanks,
            fmt::format("the run did not stop and save within {:g} s (checkpoint.grace_seconds) "
                        "after signal {} and was ended; the "
                        "checkpoints from before stand",
                        std::chrono::duration<double>(plan_.stop_grace).count(), *stop_signal_),
            describe(*board_) + ends()};
  }

  LaunchOutcome outcome() const {
    if (stop_was_late_ && !ended_at_once_) return late_stop();
    LaunchOutcome result;
    if (ended_at_once_) {
      result.exit_code = process::kSignalBase + *stop_signal_;
      return result;
    }
    const std::optional<int64_t> failed = processes_.first_failure();
    if (!failed) {
      result.exit_code = processes_.common_exit_code();
      return result;
    }
    const RankEnd& cause = processes_.end_of(cause_of_failure(*failed));
    result.exit_code = cause.signal != 0 ? process::kRanks : cause.exit_code;
    result.failure = sentence_of(cause);
    if (!all_say_the_same()) result.board = describe(*board_) + ends();
    return result;
  }

  /// A rank that says what is wrong with its data or its disk, or that died, explains more than the
  /// ranks that lost contact with it.
  int64_t cause_of_failure(int64_t first) const {
    for (int64_t rank = 0; rank < plan_.ranks; ++rank) {
      const RankEnd& end = processes_.end_of(rank);
      const bool stop = end.exit_code > process::kSignalBase;
      if (!end.killed_by_launcher &&
          (end.signal != 0 || (end.exit_code != 0 && end.exit_code != process::kRanks && !stop))) {
        return rank;
      }
    }
    for (int64_t rank = 0; rank < plan_.ranks; ++rank) {
      if (processes_.end_of(rank).killed_by_launcher) return rank;
    }
    return first;
  }

  std::string sentence_of(const RankEnd& end) const {
    const std::string said = said_by(end.rank);
    const auto log = plan_.log_folder / fmt::format("rank-{}.log", end.rank);
    if (end.killed_by_launcher) {
      return fmt::format(
          "rank {} did not react and was ended; the other ranks gave up waiting for it. Its log is "
          "{}",
          end.rank, log.string());
    }
    if (end.signal != 0) {
      return fmt::format("rank {} was ended by signal {} ({}); its log is {}", end.rank, end.signal,
                         ::strsignal(end.signal), log.string());
    }
    if (!said.empty()) return said;
    return fmt::format("rank {} ended with exit code {} without a word; its log is {}", end.rank,
                       end.exit_code, log.string());
  }

  /// A fault of recipe, data or plugin that every rank found by itself needs no board.
  bool all_say_the_same() const {
    if (said_by(0).empty()) return false;
    for (int64_t rank = 0; rank < plan_.ranks; ++rank) {
      const bool same = said_by(rank) == said_by(0) || without_rank(rank) == without_rank(0);
      if (!same || processes_.end_of(rank).exit_code == process::kRanks) return false;
    }
    return true;
  }

  std::string said_by(int64_t rank) const { return board_->read(rank).message.data(); }

  /// What a rank said, but for its own number.
  std::string without_rank(int64_t rank) const {
    std::string said = said_by(rank);
    const std::string name = fmt::format("rank {}", rank);
    for (size_t at = said.find(name); at != std::string::npos; at = said.find(name))
      said.erase(at, name.size());
    return said;
  }

  std::string ends() const {
    std::string text;
    for (int64_t rank = 0; rank < plan_.ranks; ++rank) {
      const RankEnd& end = processes_.end_of(rank);
      text +=
          fmt::format("  rank {} {}\n", rank,
                      end.killed_by_launcher ? "was ended by the launcher"
                      : end.signal != 0      ? fmt::format("was ended by signal {}", end.signal)
                                        : fmt::format("ended with exit code {}", end.exit_code));
    }
    return text;
  }

  const LaunchPlan& plan_;
  BlockedSignals signals_;  // before the store's threads exist: they inherit the mask
  std::shared_ptr<Board> board_;
  StoreServer server_;
  RankProcesses processes_;
  std::optional<int> stop_signal_;
  Clock::time_point stop_time_;
  std::optional<Clock::time_point> stop_deadline_;
  bool ended_at_once_ = false;
  bool stop_was_late_ = false;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace

LaunchOutcome launch(const LaunchPlan& plan) { return Launch(plan).run(); }

}  // namespace tally::distributed
