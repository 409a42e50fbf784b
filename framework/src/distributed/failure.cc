#include "distributed/failure.h"

#include "process/ending.h"
#include "process/exit_code.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace tally::distributed {
namespace {

void write_line(const char* text) {
  // Only async-signal-safe calls: this runs in a handler.
  const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
}

extern "C" void end_on_abort(int /*signal*/) {
  write_line(
      "tally: the process was aborted, which is how NCCL's watchdog reports a lost or late rank; "
      "the launcher's board says who was where\n");
  ::_exit(process::kRanks);
}

}  // namespace

void rethrow_from_collective(const BoardWriter& board, CollectiveKind kind, int64_t index) {
  const auto lost = [&](const std::string& reason) {
    const BoardRecord record = board.board()->read(board.rank());
    return RankError(fmt::format("rank {} lost contact in the {} {} at window {}: {}", board.rank(),
                                 name_of(kind), index, record.window, reason));
  };
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw lost(process::first_line(error));
  }
}

void map_aborts_to_rank_errors() {
  struct sigaction action {};
  action.sa_handler = end_on_abort;
  ::sigaction(SIGABRT, &action, nullptr);
}

}  // namespace tally::distributed
