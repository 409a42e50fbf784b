#pragma once

#include <cstdint>

namespace tally::train {

/// From now on SIGTERM, SIGINT and SIGUSR1 ask the run to stop after a window that all ranks agree
/// on; a second one ends the process by that signal at once.
void install_stop_signals();

/// The signal that asked this rank to stop, or 0. [any thread]
int64_t stop_signal();

}  // namespace tally::train
