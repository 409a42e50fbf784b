#include "cli/rank_process.h"

#include "log/log.h"
#include "process/ending.h"
#include "process/exit_code.h"
#include "run/run_folder.h"
#include "run/stop_request.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace tally::cli {
namespace {

using distributed::Board;
using distributed::BoardWriter;
using distributed::Membership;

BoardWriter board_of(const Membership& self) {
  return {self.board_file.empty() ? Board::in_memory(self.world)
                                  : Board::open(self.board_file, self.world),
          self.rank};
}

[[noreturn]] void end_failed_rank(const Membership& self, BoardWriter& board,
                                  run::RankSession* session, const std::exception& error,
                                  int exit_code) {
  const std::string sentence = process::first_line(error);
  board.fail(sentence);
  log::error(sentence);
  if (self.board_file.empty() && self.world > 1) {
    if (session != nullptr) session->collect_board();
    std::fputs(distributed::describe(*board.board()).c_str(), stderr);
  }
  process::end_process(exit_code);
}

/// "window 37/100  loss 0.8712  12,300 tokens/s  eta 9 s"
class TrainingProgress {
 public:
  void show(const Board& board) {
    const distributed::BoardRecord record = board.read(0);
    if (record.finished == 0) return;
    const auto now = std::chrono::steady_clock::now();
    if (first_ == 0) {
      first_ = record.finished;
      start_ = now;
      first_tokens_ = record.tokens;
    }
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const auto windows = static_cast<double>(record.finished - first_);
    std::string text =
        fmt::format("window {}/{}  loss {:.4f}", record.finished, record.last_window, record.loss);
    if (seconds > 0.0 && windows > 0.0) {
      const double left =
          static_cast<double>(record.last_window - record.finished) * seconds / windows;
      text += fmt::format("  {:.0f} tokens/s  eta {:.0f} s",
                          static_cast<double>(record.tokens - first_tokens_) / seconds, left);
    }
    line_.show(text);
  }

 private:
  ProgressLine line_;
  int64_t first_ = 0;
  int64_t first_tokens_ = 0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

bool is_rank() { return distributed::membership_from_environment().has_value(); }

void run_as_rank(run::Job& job, const std::function<int(run::RankSession&)>& work) {
  const Membership self = distributed::membership_from_environment().value();
  BoardWriter board = board_of(self);
  run::install_stop_signals(job.settings.stop_grace, board);
  std::unique_ptr<run::RankSession> session;
  int exit_code = 0;
  try {
    session = std::make_unique<run::RankSession>(job, self, board);
    exit_code = work(*session);
    board.phase(distributed::Phase::kFinished);
    session.reset();
  } catch (const std::exception& error) {
    end_failed_rank(self, board, session.get(), error,
                    process::exit_code_of(std::current_exception()));
  }
  process::end_process(exit_code);
}

int launch_ranks(const run::Settings& settings, std::vector<std::string> arguments,
                 const std::filesystem::path& log_folder) {
  distributed::LaunchPlan plan;
  plan.ranks = settings.ranks;
  plan.arguments = std::move(arguments);
  plan.log_folder = log_folder;
  plan.timeout = settings.timeout;
  plan.stop_grace = settings.stop_grace;
  plan.ranks_unblock_stops = true;
  run::make_folder(plan.log_folder);
  distributed::LaunchOutcome outcome;
  {
    TrainingProgress progress;
    plan.on_progress = [&](const Board& board) { progress.show(board); };
    outcome = distributed::launch(plan);
  }
  if (!outcome.failure.empty()) fmt::print(stderr, "tally: {}\n", outcome.failure);
  if (!outcome.board.empty()) fmt::print(stderr, "who was where:\n{}", outcome.board);
  return outcome.exit_code;
}

void require_ranks(const run::Settings& settings, std::vector<std::string> arguments,
                   const std::filesystem::path& log_folder) {
  const int exit_code = launch_ranks(settings, std::move(arguments), log_folder);
  if (exit_code != process::kDone) throw RanksFailed(exit_code);
}

}  // namespace tally::cli
