#include "cli/rank_process.h"
#include "cli/recipe_options.h"
#include "files/atomic_file.h"
#include "files/file_system.h"
#include "files/folder_lock.h"
#include "log/log.h"
#include "process/exit_code.h"
#include "report/numbers.h"
#include "run/data_folder.h"
#include "run/run_folder.h"
#include "save/beginning.h"
#include "save/restore.h"
#include "save/schedule.h"
#include "train/divisor_check.h"
#include "train/trainer.h"
#include "verbs/allowed_keys.h"
#include "verbs/train_record.h"
#include "verbs/verbs.h"
#include "verify/fingerprint.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <algorithm>
#include <fstream>
#include <memory>

namespace tally::verbs {
namespace {

struct TrainOptions {
  cli::RecipeOptions recipe;
  std::string file;
  std::string checkpoints;
  save::Wish wish;
  std::string fingerprints;
  std::string outputs;
  bool continuous = false;

  std::vector<std::string> sets() const {
    if (checkpoints.empty()) return {};
    return {cli::text_set("checkpoint.folder", checkpoints)};
  }
  /// For the ranks of a run that begins here.
  std::vector<std::string> arguments(const save::Beginning& beginning) const {
    std::vector<std::string> result{"train", file};
    const auto add = [&](const char* option, const std::string& value) {
      if (!value.empty()) result.insert(result.end(), {option, value});
    };
    if (continuous) result.emplace_back("--continuous");
    if (beginning.checkpoint) add("--resume", beginning.checkpoint->path().string());
    for (const std::string& key : wish.allowed) add("--allow", key);
    add("--fingerprints", fingerprints);
    add("--outputs", outputs);
    for (std::string& argument : recipe.arguments(sets())) result.push_back(std::move(argument));
    return result;
  }
  run::RunFolder folder(const run::Settings& settings) const {
    return outputs.empty() ? run::RunFolder::of(settings.name) : run::RunFolder(outputs);
  }
};

/// A resumed job goes on to the end of the run, unless train.stop_at lies ahead of it.
int64_t end_of_job(const run::Settings& settings, bool continuous, int64_t finished) {
  const bool stops = !continuous && settings.stop_at > finished;
  return stops ? std::min(settings.updates, settings.stop_at) : settings.updates;
}

bool nothing_left(const run::Settings& settings, const save::Beginning& beginning) {
  return beginning.checkpoint && beginning.windows() >= settings.updates;
}

/// Keeps every other run out of this one's folders.
files::FolderLocks lock_folders(const run::Settings& settings, const run::RunFolder& folder) {
  run::make_folder(folder.path());
  files::make_folders(files::FileSystem::real(), settings.checkpoint_folder);
  return files::FolderLocks({folder.path(), settings.checkpoint_folder});
}

/// Takes away what an earlier run left and this one would be mistaken for.
void clear_folders(const run::Settings& settings, const run::RunFolder& folder,
                   const save::Beginning& beginning) {
  std::error_code ignored;
  std::filesystem::remove(folder.summary(), ignored);
  if (!beginning.in_folder) save::remove_steps(settings.checkpoint_folder);
}

/// A rank of another launcher looks for itself, so all must have found the same.
save::Beginning begin(run::RankSession& session, const save::Wish& wish) {
  save::Beginning beginning = save::find_beginning(session.job(), session.data_lock(), wish);
  for (const std::string& remark : beginning.remarks) log::warning(remark);
  session.require_equal_digest(
      sha256(beginning.checkpoint ? beginning.checkpoint->path().filename().string() : ""),
      "the checkpoint to resume from");
  return beginning;
}

void restore(run::RankSession& session, run::TrainingState& state, save::Schedule& saving,
             const save::Beginning& beginning) {
  if (!beginning.checkpoint) return;
  save::restore(session, state, *beginning.checkpoint);
  state.lineage() = beginning.lineage;
  if (beginning.in_folder) saving.starts_at(beginning.checkpoint->path());
  log::info(fmt::format("resumed from {} after {}", beginning.checkpoint->path().string(),
                        report::counted(state.position().windows(), "window")));
}

/// From the model of the first window to the summary of the last.
int train_windows(run::RankSession& session, const TrainOptions& options,
                  const save::Beginning& beginning) {
  const run::Job& job = session.job();
  const run::RunFolder folder = options.folder(job.settings);
  if (session.rank() == 0) files::replace_file(folder.resolved_recipe(), job.recipe.resolved());
  const int64_t divisor = train::measure_divisor(session);
  run::TrainingState state(session);
  save::Schedule saving(session, state);
  restore(session, state, saving, beginning);
  TrainRecorder recorder(session, folder);
  recorder.open(beginning.windows());
  train::TrainerOptions trainer_options;
  trainer_options.metrics_file = folder.metrics();
  trainer_options.saving = &saving;
  train::Trainer trainer(session, state, divisor, recorder, trainer_options);
  const train::TrainResult& result =
      trainer.run_until(end_of_job(job.settings, options.continuous, beginning.windows()));
  const std::filesystem::path saved = saving.finish();
  if (!options.fingerprints.empty())
    verify::write_fingerprint(session, state, options.fingerprints);
  if (session.rank() == 0) {
    const auto summary =
        summary_of(job, folder, result, beginning.windows(), saved, recorder.last_evaluation());
    files::replace_file(folder.summary(), summary.dump(2) + "\n");
  }
  return result.stop.signal > 0 ? process::kSignalBase + static_cast<int>(result.stop.signal)
                                : process::kDone;
}

int run_rank(run::RankSession& session, const TrainOptions& options) {
  const run::Settings& settings = session.job().settings;
  const save::Beginning beginning = begin(session, options.wish);
  if (nothing_left(settings, beginning)) {
    log::info(fmt::format("nothing is left to do after {}", beginning.checkpoint->path().string()));
    return process::kDone;
  }
  std::optional<files::FolderLocks> locks;
  if (session.rank() == 0 && !session.has_parent()) {
    locks.emplace(lock_folders(settings, options.folder(settings)));
    clear_folders(settings, options.folder(settings), beginning);
  }
  return train_windows(session, options, beginning);
}

int run(const TrainOptions& options, const cli::Terminal& terminal) {
  run::Job job = options.recipe.assemble(options.file, options.sets());
  require_known_keys(job, options.wish);
  if (cli::is_rank())
    cli::run_as_rank(job, [&](run::RankSession& session) { return run_rank(session, options); });
  const run::RunFolder folder = options.folder(job.settings);
  const files::FolderLocks locks = lock_folders(job.settings, folder);
  // Looked for once, before any rank starts, so that a person reads here what was passed over.
  const save::Beginning beginning =
      save::find_beginning(job, run::open_data(job).to_json(), options.wish);
  for (const std::string& remark : beginning.remarks) terminal.remark(remark);
  if (nothing_left(job.settings, beginning)) {
    show_summary(summary_of_nothing(job, beginning.windows(), beginning.checkpoint->path()),
                 terminal);
    return process::kDone;
  }
  if (!beginning.checkpoint && !options.wish.resume.empty())
    terminal.remark(fmt::format("no checkpoint in {} to resume from; starting at window 0",
                                job.settings.checkpoint_folder.string()));
  clear_folders(job.settings, folder, beginning);
  const int exit_code =
      cli::launch_ranks(job.settings, options.arguments(beginning), folder.logs());
  const bool ended_as_meant = exit_code == process::kDone || exit_code >= process::kSignalBase;
  if (std::ifstream stream(folder.summary()); stream && ended_as_meant)
    show_summary(nlohmann::json::parse(stream), terminal);
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
  arguments.text("--resume", options->wish.resume, "Step folder to go on from, or 'latest'");
  arguments.texts("--allow", options->wish.allowed,
                  "Key in which the checkpoint's recipe may differ; may be repeated");
  arguments.flag("--overwrite", options->wish.overwrite,
                 "Take the place of an earlier run: its checkpoints are deleted");
  arguments.hidden_text("--fingerprints", options->fingerprints);
  arguments.hidden_text("--outputs", options->outputs);
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
