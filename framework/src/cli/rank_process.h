#pragma once

#include "cli/recipe_options.h"
#include "cli/terminal.h"
#include "distributed/launcher.h"
#include "run/rank_session.h"

#include <tally/error.h>

#include <functional>
#include <string>
#include <vector>

namespace tally::cli {

/// Whether this process was started as one rank of a run.
bool is_rank();

/// Runs `work` as this rank and ends the process: by its return value, or by the exit code of what
/// it threw, with one sentence on standard error and on the board.
[[noreturn]] void run_as_rank(run::Job& job, const std::function<int(run::RankSession&)>& work);

/// Starts the ranks of a job on this host with these arguments, waits, and shows progress and what
/// went wrong. `log_folder` is made. Returns the exit code.
int launch_ranks(const run::Settings& settings, std::vector<std::string> arguments,
                 const std::filesystem::path& log_folder);

/// Ranks ended with an error, which launch_ranks() has shown: nothing is left to say.
class RanksFailed final : public Error {
 public:
  explicit RanksFailed(int exit_code) : Error("ranks failed", exit_code) {}
};

/// The same for a verb that goes on only when all is well. Throws RanksFailed.
void require_ranks(const run::Settings& settings, std::vector<std::string> arguments,
                   const std::filesystem::path& log_folder);

}  // namespace tally::cli
