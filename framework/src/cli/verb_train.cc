#include "checkpoint/atomic_file.h"
#include "cli/rank_job.h"
#include "cli/recipe_options.h"
#include "cli/verbs.h"
#include "distributed/control_record.h"
#include "distributed/failure.h"
#include "log/log.h"
#include "train/checkpoint_schedule.h"
#include "train/data_folder.h"
#include "train/fingerprint.h"
#include "train/json_number.h"
#include "train/resuming.h"
#include "train/run_folder.h"
#include "train/stop_request.h"
#include "train/trainer.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <memory>

namespace tally::cli {
namespace {

using nlohmann::json;

constexpr int kSignalBase = 128;
constexpr int kLateStop = 4;

struct TrainOptions {
  RecipeOptions recipe;
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
int64_t end_of_job(const train::Settings& settings, bool continuous, int64_t finished) {
  const bool stops = !continuous && settings.stop_at > finished;
  return stops ? std::min(settings.updates, settings.stop_at) : settings.updates;
}

/// The evaluations of a run, on rank 0: a line in a file and in the log for each.
class EvaluationLog {
 public:
  explicit EvaluationLog(const train::Job& job) {
    if (job.settings.evaluate_every > 0) lines_.emplace(train::evaluations_file(job.settings.name));
  }
  /// The evaluation after the checkpoint's own window comes after the checkpoint: it is made again.
  void open(int64_t windows) {
    if (lines_) lines_->open(std::max<int64_t>(windows - 1, 0));
  }
  void add(int64_t windows, const train::Evaluation& evaluation) {
    last_ = json::parse(train::to_json(evaluation));
    last_["window"] = windows - 1;
    lines_->append(last_.dump());
    log::info(fmt::format("after {} windows the loss on '{}' is {:.6f}", windows, evaluation.split,
                          evaluation.loss));
  }
  /// null before the first.
  const json& last() const { return last_; }

 private:
  std::optional<train::JsonLines> lines_;
  json last_;
};

json summary_of(const train::Job& job, const train::TrainResult& result,
                const std::filesystem::path& checkpoint, const json& evaluation) {
  return {{"recipe", job.settings.name},
          {"windows", result.windows},
          {"ranks", job.settings.ranks},
          {"loss", train::number(result.loss)},
          {"positions", result.positions},
          {"seconds", result.seconds},
          {"stop_signal", result.stop_signal},
          {"metrics", train::metrics_file(job.settings.name).string()},
          {"checkpoint", checkpoint.string()},
          {"evaluation", evaluation}};
}

/// Goes on from a checkpoint, when one was asked for.
void resume(train::RankSession& session, train::Trainer& trainer, const TrainOptions& options) {
  if (options.resume.empty()) return;
  std::vector<std::string> remarks;
  const auto step = train::find_checkpoint(session.job(), session.data_lock(), options.resume,
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
  train::restore(session, trainer, checkpoint::CheckpointReader::open(*step));
  log::info(
      fmt::format("resumed from {} after {} windows", step->string(), trainer.state().windows()));
}

void log_stop(int64_t signal, int64_t finished) {
  const train::StopRequest request = train::stop_request();
  std::string reason = "another rank was asked to stop";
  if (signal == distributed::kFailedSave) {
    reason = "a checkpoint failed (checkpoint.on_error)";
  } else if (request.signal != 0) {
    reason = fmt::format("signal {} came {}", request.signal,
                         request.window < 0 ? "before the first window"
                                            : fmt::format("at window {}", request.window));
  }
  log::info(fmt::format("{}; stopping after {} windows", reason, finished));
}

int run_rank(train::RankSession& session, const TrainOptions& options) {
  train::Job& job = session.job();
  const std::string& name = job.settings.name;
  if (session.rank() == 0) {
    train::make_folder(train::run_folder(name));
    checkpoint::replace_file(train::resolved_recipe_file(name), job.recipe.resolved());
  }
  train::CheckpointSchedule* schedule = nullptr;  // set before run_until starts the loader
  train::TrainerOptions trainer_options;
  trainer_options.metrics_file = train::metrics_file(name);
  trainer_options.after_window = [&] { schedule->after_window(); };
  trainer_options.stop_signal = [&] {
    return schedule->must_stop() ? distributed::kFailedSave : train::stop_signal();
  };
  trainer_options.on_stop = [&](int64_t signal, int64_t finished) {
    distributed::end_process_within(job.settings.stop_grace, kLateStop);
    log_stop(signal, finished);
  };
  EvaluationLog evaluations(job);
  if (session.rank() == 0) {
    trainer_options.on_evaluation = [&](int64_t windows, const train::Evaluation& evaluation) {
      evaluations.add(windows, evaluation);
    };
  }
  train::Trainer trainer(session, trainer_options);
  train::CheckpointSchedule saving(session, trainer);
  schedule = &saving;
  resume(session, trainer, options);
  if (session.rank() == 0) evaluations.open(trainer.state().windows());
  trainer.run_until(end_of_job(job.settings, options.continuous, trainer.state().windows()));
  const train::TrainResult& result = trainer.result();
  const std::filesystem::path saved = saving.finish();
  if (!options.fingerprints.empty())
    train::write_fingerprint(session, trainer, options.fingerprints);
  if (session.rank() == 0) {
    checkpoint::replace_file(train::summary_file(name),
                             summary_of(job, result, saved, evaluations.last()).dump(2) + "\n");
  }
  return result.stop_signal > 0 ? kSignalBase + static_cast<int>(result.stop_signal) : 0;
}

void show_summary(const train::Job& job, const Terminal& terminal) {
  std::ifstream stream(train::summary_file(job.settings.name));
  const json summary = json::parse(stream);
  terminal.document(summary);
  terminal.line(fmt::format("{}: {} windows on {} ranks in {:.1f} s, loss {}", job.settings.name,
                            summary["windows"].get<int64_t>(), job.settings.ranks,
                            summary["seconds"].get<double>(),
                            train::shown_number(summary["loss"])));
  if (const json& evaluation = summary["evaluation"]; !evaluation.is_null()) {
    terminal.line(fmt::format("after {} windows the loss on '{}' is {}, all in {}",
                              evaluation["window"].get<int64_t>() + 1,
                              evaluation["split"].get<std::string>(),
                              train::shown_number(evaluation["loss"]),
                              train::evaluations_file(job.settings.name).string()));
  }
  terminal.line(fmt::format("checkpoint {}, metrics {}", summary["checkpoint"].get<std::string>(),
                            summary["metrics"].get<std::string>()));
}

/// Looked for once, before any rank starts, so that a person reads here what was passed over.
std::optional<std::filesystem::path> checkpoint_to_resume(const TrainOptions& options,
                                                          train::Job& job,
                                                          const Terminal& terminal) {
  if (options.resume.empty()) return std::nullopt;
  std::vector<std::string> remarks;
  const auto step = train::find_checkpoint(job, train::open_data(job).to_json(), options.resume,
                                           options.allowed, remarks);
  for (const std::string& remark : remarks) terminal.remark(remark);
  if (!step) {
    terminal.remark(fmt::format("no checkpoint in {} to resume from; starting at window 0",
                                job.settings.checkpoint_folder.string()));
  }
  return step;
}

int run(const TrainOptions& options, const Terminal& terminal) {
  train::Job job = options.recipe.assemble(options.file, options.sets());
  if (is_rank()) {
    run_as_rank(job, [&](train::RankSession& session) { return run_rank(session, options); });
  }
  train::make_folder(train::run_folder(job.settings.name));
  std::vector<std::string> arguments = options.arguments();
  if (const auto step = checkpoint_to_resume(options, job, terminal)) {
    arguments.insert(arguments.end(), {"--resume", step->string()});
  }
  std::error_code ignored;
  std::filesystem::remove(train::summary_file(job.settings.name), ignored);
  const int exit_code =
      launch_ranks(job.settings, std::move(arguments), train::logs_folder(job.settings.name));
  if (std::filesystem::exists(train::summary_file(job.settings.name), ignored))
    show_summary(job, terminal);
  return exit_code;
}

}  // namespace

RunVerb declare_train(Arguments arguments) {
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
  return [options](const Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::cli
