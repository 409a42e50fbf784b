#include "distributed/failure.h"

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <tally/error.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace tally::distributed {
namespace {

constexpr int kLostRank = 4;
constexpr int kUnforeseen = 70;

/// Without the source position in front that Gloo writes: "[/path/pair.cc:547] Connection closed".
std::string first_line_of(std::string text) {
  if (text.starts_with('[')) {
    const size_t begin = text.find("] ");
    if (begin != std::string::npos && text.rfind(".cc:", begin) != std::string::npos)
      text.erase(0, begin + 2);
  }
  const size_t end = text.find('\n');
  if (end != std::string::npos) text.resize(end);
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

void write_line(const char* text) {
  // Only async-signal-safe calls: this runs in a handler.
  const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
}

extern "C" void end_on_abort(int /*signal*/) {
  write_line(
      "tally: the process was aborted, which is how NCCL's watchdog reports a lost or late rank; "
      "the launcher's board says who was where\n");
  ::_exit(kLostRank);
}

}  // namespace

std::string first_line(const std::exception& error) {
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error)) {
    return first_line_of(torch->what_without_backtrace());
  }
  return first_line_of(error.what());
}

std::string sentence_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return first_line(error);
  } catch (...) {
    return "something was thrown that is no std::exception";
  }
}

int exit_code_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.exit_code();
  } catch (...) {
    return kUnforeseen;
  }
}

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
    throw lost(first_line(error));
  }
}

void end_process_within(std::chrono::milliseconds grace, int exit_code) {
  static std::atomic<bool> armed{false};
  if (armed.exchange(true)) return;
  std::thread([grace, exit_code] {
    std::this_thread::sleep_for(grace);
    std::_Exit(exit_code);
  }).detach();
}

void keep_libtorch_quiet() {
  ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
}

void map_aborts_to_rank_errors() {
  struct sigaction action {};
  action.sa_handler = end_on_abort;
  ::sigaction(SIGABRT, &action, nullptr);
}

}  // namespace tally::distributed
