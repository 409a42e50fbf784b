#pragma once

#include "save/schedule.h"
#include "support/rank_threads.h"
#include "support/scalar_task.h"
#include "train/trainer.h"

#include <tally/loss_reducer.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tally::train {

/// How a script is run: the real host over hooks of plugins, with the script's task and sampler.
struct ScriptedOptions {
  int64_t world = 1;
  int64_t shards = 0;  ///< 0: one a rank.
  int64_t windows = 1;
  std::string reducer = "token_mean";
  std::string policy = "no_sync";      ///< no_sync, or a hook of test_policies.
  bool update = false;                 ///< Whether windows end with an optimizer step.
  std::vector<std::string> sets = {};  ///< Further options: "train.clip_norm=1".
  std::function<std::unique_ptr<LossReducer>()> make_reducer = {};  ///< Instead of a plugin's.
  std::function<std::unique_ptr<Task>(const Script&, int64_t rank)> make_task =
      [](const Script& script, int64_t) { return std::make_unique<ScalarTask>(script); };
  std::function<int64_t(int64_t rank)> stop_signal = [](int64_t) { return 0; };
  /// Where a rank saves, as `[checkpoint]` in `sets` says; null: it does not.
  std::function<files::FileSystem*(int64_t rank)> file_system = [](int64_t) { return nullptr; };
  /// Sees every rank after each of its passes.
  std::function<void(run::RankSession&, const Pass&)> after_pass = [](run::RankSession&,
                                                                      const Pass&) {};
};

struct PassLog {
  Pass pass;
  int64_t all_reduces = 0;  ///< Of the gradients' group, started in this pass.
  std::vector<double> theta;
  std::vector<double> gradient;
};

/// What happened on one rank.
struct RankLog {
  std::vector<std::vector<double>> gradients;  ///< After each window's reduction, by parameter.
  std::vector<PassLog> passes;
  std::vector<WindowMetrics> metrics;
  std::vector<std::pair<int64_t, Evaluation>> evaluations;  ///< After so many windows.
  std::vector<double> theta;                                ///< At the end, also of a failed run.
  int64_t control_exchanges = 0;
  TrainResult result;
  std::filesystem::path saved;  ///< The last step, of a run that saves.
  std::exception_ptr failure;
};

/// Runs the script on `world` threads. A failure stays in its rank's log.
std::vector<RankLog> run_script(const std::function<Script(int64_t rank)>& script,
                                const ScriptedOptions& options);
std::vector<RankLog> run_script(const Script& script, const ScriptedOptions& options);

/// The same, where no rank may fail.
std::vector<RankLog> run_script_well(const Script& script, const ScriptedOptions& options);

/// A plan of one window whose shard s runs `shards[s]`.
inline std::vector<WindowPlan> one_window(std::vector<Shard> shards) {
  return {{0, std::move(shards)}};
}

}  // namespace tally::train
