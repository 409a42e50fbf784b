#pragma once

#include "cli/terminal.h"
#include "run/rank_session.h"
#include "run/run_folder.h"
#include "train/json_lines.h"
#include "train/observer.h"
#include "train/trainer.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace tally::verbs {

/// What a run leaves beside its checkpoints: log lines on every rank, the evaluations on rank 0.
class TrainRecorder final : public train::Observer {
 public:
  TrainRecorder(run::RankSession& session, const run::RunFolder& folder);
  /// Before the first window; `windows`: those that are finished.
  void open(int64_t windows);
  void on_evaluation(int64_t windows, const train::Evaluation& evaluation) override;
  void on_stop(const distributed::Stop& stop, int64_t windows) override;
  /// null before the first.
  const nlohmann::json& last_evaluation() const { return last_; }

 private:
  const run::Settings& settings_;
  std::optional<train::JsonLines> lines_;
  nlohmann::json last_;
};

/// The document of a run that began after `begun` windows and ended.
nlohmann::json summary_of(const run::Job& job, const run::RunFolder& folder,
                          const train::TrainResult& result, int64_t begun,
                          const std::filesystem::path& checkpoint,
                          const nlohmann::json& evaluation);

/// The document of one that had nothing left to do: it changes no file.
nlohmann::json summary_of_nothing(const run::Job& job, int64_t windows,
                                  const std::filesystem::path& checkpoint);

/// Either for a person, or with --json as it is.
void show_summary(const nlohmann::json& summary, const cli::Terminal& terminal);

}  // namespace tally::verbs
