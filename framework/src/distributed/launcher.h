#pragma once

#include "distributed/board.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tally::distributed {

struct LaunchPlan {
  int64_t ranks = 1;
  std::vector<std::string> arguments;  ///< Of this program, after its name; the ranks know from the
                                       ///< environment that they are ranks.
  std::filesystem::path
      log_folder;  ///< Gets rank-K.log with both output streams of each rank. Must exist.
  std::chrono::milliseconds timeout{0};  ///< run.timeout
  std::chrono::milliseconds stop_grace =
      std::chrono::minutes(1);       ///< From a forwarded signal to the end of all ranks.
  bool ranks_unblock_stops = false;  ///< Ranks start with SIGINT, SIGTERM and SIGUSR1 blocked, and
                                     ///< take one that came early when they can stop in order.
  std::function<void(const Board&)> on_progress = [](const Board&) {
  };  ///< Called several times a second.
};

struct LaunchOutcome {
  int exit_code = 0;
  std::string
      failure;  ///< One sentence for a person; empty after success and after a stop by signal.
  std::string board;  ///< Who was where, when a rank was lost; empty otherwise.
};

/// Starts the ranks on this host and waits for them. The first signal of SIGINT, SIGTERM and
/// SIGUSR1 is forwarded once; a second one ends all ranks at once. When a rank fails the others get
/// a short time to end by themselves and are then killed; a stopped rank too. Ranks die with this
/// process. Nothing is left behind. [main thread, before it has made other threads]
LaunchOutcome launch(const LaunchPlan& plan);

}  // namespace tally::distributed
