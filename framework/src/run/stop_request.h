#pragma once

#include "distributed/board.h"

#include <chrono>
#include <cstdint>

namespace tally::run {

/// A signal that asks the run to stop.
struct StopRequest {
  int64_t signal = 0;   ///< 0: none was received.
  int64_t window = -1;  ///< Window that this rank was in when it came.
};

/// From now on SIGTERM, SIGINT and SIGUSR1 ask the run to stop after a window that all ranks agree
/// on, and `grace` later the process ends with exit code 4. A second one ends it by that signal at
/// once, except the same signal from another sender within a second: a service manager signals the
/// launcher, which forwards, and its ranks too. Unblocks the three. `board` must outlive the
/// process's work. [main thread, before others exist]
void install_stop_signals(std::chrono::milliseconds grace, distributed::BoardWriter board);

/// What asked this rank to stop. [any thread]
StopRequest stop_request();
/// Its signal, or 0. [any thread]
int64_t stop_signal();

}  // namespace tally::run
