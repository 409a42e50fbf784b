#include "cli/rank_process.h"
#include "cli/recipe_options.h"
#include "distributed/control_record.h"
#include "files/atomic_file.h"
#include "log/log.h"
#include "process/ending.h"
#include "process/exit_code.h"
#include "report/json_number.h"
#include "report/numbers.h"
#include "run/data_folder.h"
#include "run/run_folder.h"
#include "run/stop_request.h"
#include "save/find_checkpoint.h"
#include "save/restore.h"
#include "save/schedule.h"
#include "train/divisor_check.h"
#include "train/trainer.h"
#include "verbs/verbs.h"
#include "verify/fingerprint.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>

namespace tally::verbs {
namespace {

using nlohmann::json;

struct TrainOptions {
  cli::RecipeOptions recipe;
  std::string file;
  std::string checkpoints;
  std::string resume;
  std::vector<std::string> allowed;
  std::string fingerprints;
  bool continuous = false;

  std::vector<std::string> sets() const {
    if (checkpoints.empty()) return {};
    return {"checkpoint.folder=\"" + checkpoints + "\""};
  }
  std::vector<std::string> arguments() const {
    std::vector<std::string> result{"train", file};
    if (continuous) result.emplace_back("--continuous");
    for (const std::string& key : allowed) result.insert(result.end(), {"--allow", key});
    if (!fingerprints.empty()) result.insert(result.end(), {"--fingerprints", fingerprints});
    for (std::string& argument : recipe.arguments(sets())) result.push_back(std::move(argument));
    return result;
  }
};

/// A resumed job goes on to the end of the run, unless train.stop_at lies ahead of it.
int64_t end_of_job(const run::Settings& settings, bool continuous, int64_t finished) {
  const bool stops = !continuous && settings.stop_at > finished;
  return stops ? std::min(settings.updates, settings.stop_at) : settings.updates;
}

/// The sentence that a log has of a stop.
std::string reason_of(int64_t signal) {
  if (signal == distributed::kFailedSave) return "a checkpoint failed (checkpoint.on_error)";
  const run::StopRequest request = run::stop_request();
  if (request.signal == 0) return "another rank was asked to stop";
  return fmt::format(
      "signal {} came {}", request.signal,
      request.window < 0 ? "before the first window" : fmt::format("at window {}", request.window));
}

/// What a run leaves beside its checkpoints: log lines on every rank, the evaluations on rank 0.
class Recorder final : public train::Observer {
 public:
  explicit Recorder(run::RankSession& session) : settings_(session.job().settings) {
    if (session.rank() == 0 && settings_.evaluate_every > 0)
      lines_.emplace(run::evaluations_file(settings_.name));
  }
  /// The evaluation after the checkpoint's own window comes after the checkpoint: it is made again.
  void open(int64_t windows) {
    if (lines_) lines_->open(std::max<int64_t>(windows - 1, 0));
  }
  void on_evaluation(int64_t windows, const train::Evaluation& evaluation) override {
    if (!lines_) return;
    last_ = json::parse(train::to_json(evaluation));
    last_["window"] = windows - 1;
    lines_->append(last_.dump());
    log::info(fmt::format("after {} windows the loss on '{}' is {:.6f}", windows, evaluation.split,
                          evaluation.loss));
  }
  void on_stop(int64_t signal, int64_t windows) override {
    process::end_process_within(settings_.stop_grace, process::kRanks);
    log::info(fmt::format("{}; stopping after {} windows", reason_of(signal), windows));
  }
  /// null before the first.
  const json& last_evaluation() const { return last_; }

 private:
  const run::Settings& settings_;
  std::optional<train::JsonLines> lines_;
  json last_;
};

/// Why there is no loss to show, or why it is none to be glad of; empty for a finite one.
std::string remark_on(const train::TrainResult& result, int64_t begun) {
  if (result.loss && std::isfinite(*result.loss)) return "";
  if (result.loss)
    return fmt::format("the loss of the last window is not finite ({}); the model may be spoilt",
                       *result.loss);
  if (result.windows == begun) return "nothing was left to do, so there is no loss";
  return fmt::format("none of the {} had a supervised position, so there is no loss",
                     report::counted(result.windows - begun, "window"));
}

json summary_of(const run::Job& job, const train::TrainResult& result, int64_t begun,
                const std::filesystem::path& checkpoint, const json& evaluation) {
  return {{"recipe", job.settings.name},
          {"windows", result.windows},
          {"windows_run", result.windows - begun},
          {"windows_skipped", result.skipped},
          {"ranks", job.settings.ranks},
          {"loss", report::number(result.loss)},
          {"remark", remark_on(result, begun)},
          {"positions", result.positions},
          {"seconds", result.seconds},
          {"stop_signal", result.stop_signal},
          {"metrics", run::metrics_file(job.settings.name).string()},
          {"checkpoint", checkpoint.string()},
          {"evaluation", evaluation}};
}

/// Goes on from a checkpoint, when one was asked for.
void resume(run::RankSession& session, run::TrainingState& state, const TrainOptions& options) {
  if (options.resume.empty()) return;
  std::vector<std::string> remarks;
  const auto step = save::find_checkpoint(session.job(), session.data_lock(), options.resume,
                                          options.allowed, remarks);
  for (const std::string& remark : remarks) log::warning(remark);
  // A rank of another launcher looks for itself, so all must have found the same.
  session.require_equal_digest(sha256(step ? step->filename().string() : ""),
                               "the checkpoint to resume from");
  if (!step) {
    log::warning(fmt::format("no checkpoint in {} to resume from; starting at window 0",
                             session.job().settings.checkpoint_folder.string()));
    return;
  }
  save::restore(session, state, checkpoint::CheckpointReader::open(*step));
  log::info(fmt::format("resumed from {} after {}", step->string(),
                        report::counted(state.position().windows(), "window")));
}

int run_rank(run::RankSession& session, const TrainOptions& options) {
  run::Job& job = session.job();
  const std::string& name = job.settings.name;
  if (session.rank() == 0) {
    run::make_folder(run::run_folder(name));
    files::replace_file(run::resolved_recipe_file(name), job.recipe.resolved());
  }
  const int64_t divisor = train::measure_divisor(session);
  run::TrainingState state(session);
  resume(session, state, options);
  const int64_t begun = state.position().windows();
  save::Schedule saving(session, state);
  Recorder recorder(session);
  recorder.open(begun);
  train::TrainerOptions trainer_options;
  trainer_options.metrics_file = run::metrics_file(name);
  trainer_options.saving = &saving;
  train::Trainer trainer(session, state, divisor, recorder, trainer_options);
  const train::TrainResult& result =
      trainer.run_until(end_of_job(job.settings, options.continuous, begun));
  const std::filesystem::path saved = saving.finish();
  if (!options.fingerprints.empty())
    verify::write_fingerprint(session, state, options.fingerprints);
  if (session.rank() == 0) {
    const json summary = summary_of(job, result, begun, saved, recorder.last_evaluation());
    files::replace_file(run::summary_file(name), summary.dump(2) + "\n");
  }
  return result.stop_signal > 0 ? process::kSignalBase + static_cast<int>(result.stop_signal)
                                : process::kDone;
}

void show_summary(const run::Job& job, const cli::Terminal& terminal) {
  std::ifstream stream(run::summary_file(job.settings.name));
  const json summary = json::parse(stream);
  terminal.document(summary);
  terminal.line(fmt::format("{}: {} on {} in {:.1f} s, loss {}", job.settings.name,
                            report::counted(summary["windows"].get<int64_t>(), "window"),
                            report::counted(job.settings.ranks, "rank"),
                            summary["seconds"].get<double>(),
                            report::shown_number(summary["loss"])));
  if (const auto remark = summary["remark"].get<std::string>(); !remark.empty())
    terminal.line(remark);
  if (const json& evaluation = summary["evaluation"]; !evaluation.is_null()) {
    terminal.line(fmt::format("after {} the loss on '{}' is {}, all in {}",
                              report::counted(evaluation["window"].get<int64_t>() + 1, "window"),
                              evaluation["split"].get<std::string>(),
                              report::shown_number(evaluation["loss"]),
                              run::evaluations_file(job.settings.name).string()));
  }
  terminal.line(fmt::format("checkpoint {}, metrics {}", summary["checkpoint"].get<std::string>(),
                            summary["metrics"].get<std::string>()));
}

/// Looked for once, before any rank starts, so that a person reads here what was passed over.
std::optional<std::filesystem::path> checkpoint_to_resume(const TrainOptions& options,
                                                          run::Job& job,
                                                          const cli::Terminal& terminal) {
  if (options.resume.empty()) return std::nullopt;
  std::vector<std::string> remarks;
  const auto step = save::find_checkpoint(job, run::open_data(job).to_json(), options.resume,
                                          options.allowed, remarks);
  for (const std::string& remark : remarks) terminal.remark(remark);
  if (!step) {
    terminal.remark(fmt::format("no checkpoint in {} to resume from; starting at window 0",
                                job.settings.checkpoint_folder.string()));
  }
  return step;
}

int run(const TrainOptions& options, const cli::Terminal& terminal) {
  run::Job job = options.recipe.assemble(options.file, options.sets());
  if (cli::is_rank()) {
    cli::run_as_rank(job, [&](run::RankSession& session) { return run_rank(session, options); });
  }
  run::make_folder(run::run_folder(job.settings.name));
  std::vector<std::string> arguments = options.arguments();
  if (const auto step = checkpoint_to_resume(options, job, terminal)) {
    arguments.insert(arguments.end(), {"--resume", step->string()});
  }
  std::error_code ignored;
  std::filesystem::remove(run::summary_file(job.settings.name), ignored);
  const int exit_code =
      cli::launch_ranks(job.settings, std::move(arguments), run::logs_folder(job.settings.name));
  if (std::filesystem::exists(run::summary_file(job.settings.name), ignored))
    show_summary(job, terminal);
  return exit_code;
}

}  // namespace

cli::RunVerb declare_train(cli::Arguments arguments) {
  auto options = std::make_shared<TrainOptions>();
  arguments.required_file("recipe", options->file, "Recipe file");
  arguments.flag("--continuous", options->continuous,
                 "Run to train.updates; train.stop_at is ignored");
  arguments.text("--checkpoints", options->checkpoints,
                 "Folder of the checkpoints: beats checkpoint.folder");
  arguments.text("--resume", options->resume, "Step folder to go on from, or 'latest'");
  arguments.texts("--allow", options->allowed,
                  "Key in which the checkpoint's recipe may differ; may be repeated");
  arguments.hidden_text("--fingerprints", options->fingerprints);
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
