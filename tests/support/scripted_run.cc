#include "support/scripted_run.h"

#include "run/data_folder.h"
#include "support/temporary_folder.h"
#include "train/divisor_check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>

namespace tally::train {
namespace {

namespace fs = std::filesystem;

recipe::Recipe write_recipe(const fs::path& folder, const ScriptedOptions& options) {
  const bool shipped = options.policy == "no_sync";
  std::ofstream(folder / "scripted.toml")
      << "[run]\nranks = " << options.world << "\ntimeout = 20\ndevice = \"cpu\"\n"
      << "allow_idle_ranks = true\n"
      << "[window]\nshards = " << (options.shards == 0 ? options.world : options.shards) << "\n"
      << "[train]\nupdates = " << options.windows << "\n"
      << "[optimizer]\nlearning_rate = 0.125\n"
      << "[loss_reducer]\nplugin = \"" << options.reducer << "\"\n"
      << "[sync_policy]\nplugin = \"" << (shipped ? "no_sync" : "test_policies") << "\"\n"
      << (shipped ? "" : "hook = \"" + options.policy + "\"\n") << "[data]\nfolder = \""
      << folder.string() << "\"\n";
  return recipe::Recipe::load(
      {.recipe = folder / "scripted.toml", .config = {}, .sets = options.sets});
}

template <class T>
plugin::Hooked<T> in_test(std::unique_ptr<T> hook, const std::string& kind) {
  return {std::move(hook), {kind, "scripted", "test", "0"}};
}

run::Job make_job(const fs::path& folder, const Script& script, int64_t rank,
                  const ScriptedOptions& options) {
  const recipe::Recipe recipe = write_recipe(folder, options);
  auto factory = std::make_unique<plugin::HookFactory>(
      std::vector<fs::path>{TALLY_BINARY_FOLDER "/lib/tally/plugins",
                            TALLY_BINARY_FOLDER "/tests/plugins"},
      run::read_settings(recipe).seed);
  auto reducer = options.make_reducer
                     ? in_test<LossReducer>(options.make_reducer(), "loss_reducer")
                     : factory->create<LossReducer>(recipe.section("loss_reducer"));
  auto policy = factory->create<SyncPolicy>(recipe.section("sync_policy"));
  return run::assemble(
      recipe, std::move(factory),
      {in_test<Task>(options.make_task(script, rank), "task"),
       in_test<Sampler>(std::make_unique<ScriptedSampler>(script.plans), "sampler"),
       std::move(reducer),
       std::move(policy),
       {}});
}

/// By parameter, as the task lists them.
std::vector<double> in_task_order(const at::Tensor& flat) {
  const at::Tensor values = flat.to(at::kDouble).flip(0).contiguous();
  const auto* data = values.const_data_ptr<double>();
  return {data, data + values.numel()};
}

int64_t started(const distributed::Group& group) {
  return static_cast<int64_t>(group.process_group()->getSequenceNumberForGroup());
}

/// Writes all that it is told into the rank's log.
class Follower final : public Observer {
 public:
  Follower(run::RankSession& session, const ScriptedOptions& options, RankLog& log)
      : session_(session),
        options_(options),
        log_(log),
        before_(started(session.groups().gradients)) {}

  void after_pass(const Pass& pass) override {
    distributed::FlatParameters& parameters = session_.parameters();
    const int64_t now = started(session_.groups().gradients);
    log_.passes.push_back({pass, now - before_, in_task_order(parameters.values()),
                           in_task_order(parameters.gradients())});
    before_ = now;
    options_.after_pass(session_, pass);
  }
  bool after_reduction(int64_t /*window*/) override {
    log_.gradients.push_back(in_task_order(session_.parameters().gradients()));
    before_ = started(session_.groups().gradients);
    return options_.update;
  }
  void on_metrics(const WindowMetrics& metrics) override { log_.metrics.push_back(metrics); }
  void on_evaluation(int64_t windows, const Evaluation& evaluation) override {
    log_.evaluations.emplace_back(windows, evaluation);
  }

 private:
  run::RankSession& session_;
  const ScriptedOptions& options_;
  RankLog& log_;
  int64_t before_;
};

void run_rank(run::RankSession& session, const ScriptedOptions& options, RankLog& log) {
  const int64_t divisor = measure_divisor(session);
  run::TrainingState state(session);
  std::optional<save::Schedule> saving;
  if (files::FileSystem* system = options.file_system(session.rank()))
    saving.emplace(session, state, *system);
  Follower follower(session, options, log);
  TrainerOptions trainer_options;
  trainer_options.on_loader_failure = [](const std::exception_ptr&) {};
  trainer_options.stop_signal = [&] { return options.stop_signal(session.rank()); };
  trainer_options.saving = saving ? &*saving : nullptr;
  Trainer trainer(session, state, divisor, follower, trainer_options);
  const int64_t control = started(session.groups().control);
  log.result = trainer.run_until(options.windows);
  log.control_exchanges = started(session.groups().control) - control;
  if (saving) log.saved = saving->finish();
}

}  // namespace

std::vector<RankLog> run_script(const std::function<Script(int64_t rank)>& script,
                                const ScriptedOptions& options) {
  const TemporaryFolder folder;
  std::vector<run::Job> jobs;
  for (int64_t rank = 0; rank < options.world; ++rank)
    jobs.push_back(make_job(folder.path(), script(rank), rank, options));
  run::prepare_data(jobs.front());
  std::vector<RankLog> logs(static_cast<size_t>(options.world));
  const auto failures = distributed::run_ranks(
      options.world, [&](const distributed::Membership& self, distributed::BoardWriter board) {
        const auto rank = static_cast<size_t>(self.rank);
        run::RankSession session(jobs[rank], self, std::move(board));
        RankLog& log = logs[rank];
        try {
          run_rank(session, options, log);
        } catch (...) {
          log.failure = std::current_exception();
        }
        log.theta = in_task_order(session.parameters().values());
      });
  for (size_t rank = 0; rank < logs.size(); ++rank)
    if (failures[rank]) logs[rank].failure = failures[rank];
  return logs;
}

std::vector<RankLog> run_script(const Script& script, const ScriptedOptions& options) {
  return run_script([&](int64_t) { return script; }, options);
}

std::vector<RankLog> run_script_well(const Script& script, const ScriptedOptions& options) {
  std::vector<RankLog> logs = run_script(script, options);
  for (size_t rank = 0; rank < logs.size(); ++rank)
    EXPECT_EQ(distributed::text_of(logs[rank].failure), "") << "rank " << rank;
  return logs;
}

}  // namespace tally::train
