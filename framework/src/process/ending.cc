#include "process/ending.h"

#include "process/exit_code.h"
#include "report/text.h"

#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <tally/error.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tally::process {
namespace {

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
  return report::one_line(text);
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

void end_process(int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
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

}  // namespace tally::process
