#include "scripted_run.h"

#include "train/data_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>

namespace tally::train {
namespace {

namespace fs = std::filesystem;

/// A folder of the running test's own, removed at the end.
class TestFolder {
 public:
  TestFolder() {
    static std::atomic<int> number{0};
    path_ = fs::path(::testing::TempDir()) /
            fmt::format("tally-train-{}-{}", ::getpid(), number.fetch_add(1));
    fs::create_directories(path_);
  }
  ~TestFolder() { fs::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

recipe::Recipe write_recipe(const fs::path& folder, const ScriptedOptions& options) {
  const bool shipped = options.policy == "no_sync";
  std::ofstream(folder / "scripted.toml")
      << "[run]\nranks = " << options.world << "\ntimeout = 20\ndevice = \"cpu\"\n"
      << "allow_idle_ranks = true\n"
      << "[sampler]\nshards = " << (options.shards == 0 ? options.world : options.shards) << "\n"
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

Job make_job(const fs::path& folder, const Script& script, int64_t rank,
             const ScriptedOptions& options) {
  const recipe::Recipe recipe = write_recipe(folder, options);
  Settings settings = read_settings(recipe);
  const OptimizerOptions optimizer = read_optimizer(recipe.section("optimizer"));
  auto factory = std::make_unique<plugin::HookFactory>(
      std::vector<fs::path>{TALLY_BINARY_FOLDER "/lib/tally/plugins",
                            TALLY_BINARY_FOLDER "/tests/plugins"},
      settings.seed);
  auto reducer = options.make_reducer
                     ? in_test<LossReducer>(options.make_reducer(), "loss_reducer")
                     : factory->create<LossReducer>(recipe.section("loss_reducer"));
  auto policy = factory->create<SyncPolicy>(recipe.section("sync_policy"));
  return Job{recipe,
             std::move(settings),
             optimizer,
             std::move(factory),
             in_test<Task>(options.make_task(script, rank), "task"),
             in_test<Sampler>(std::make_unique<ScriptedSampler>(script.plans), "sampler"),
             std::move(reducer),
             std::move(policy),
             {}};
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

void run_rank(RankSession& session, const ScriptedOptions& options, RankLog& log) {
  distributed::FlatParameters& parameters = session.parameters();
  int64_t before = 0;
  TrainerOptions trainer_options;
  trainer_options.after_pass = [&](const Pass& pass, int64_t shard) {
    const int64_t now = started(session.groups().gradients);
    log.passes.push_back({pass, shard, now - before, in_task_order(parameters.values()),
                          in_task_order(parameters.gradients())});
    before = now;
    options.after_pass(session, pass);
  };
  trainer_options.after_reduction = [&](int64_t) {
    log.gradients.push_back(in_task_order(parameters.gradients()));
    before = started(session.groups().gradients);
    return options.update;
  };
  trainer_options.on_metrics = [&](const WindowMetrics& metrics) {
    log.metrics.push_back(metrics);
  };
  trainer_options.on_evaluation = [&](int64_t windows, const Evaluation& evaluation) {
    log.evaluations.emplace_back(windows, evaluation);
  };
  trainer_options.on_loader_failure = [](const std::exception_ptr&) {};
  std::optional<CheckpointSchedule> schedule;
  trainer_options.stop_signal = [&] {
    return schedule && schedule->must_stop() ? distributed::kFailedSave
                                             : options.stop_signal(session.rank());
  };
  trainer_options.after_window = [&] {
    if (schedule) schedule->after_window();
  };
  Trainer trainer(session, trainer_options);
  if (checkpoint::FileSystem* system = options.file_system(session.rank()))
    schedule.emplace(session, trainer, *system);
  before = started(session.groups().gradients);
  const int64_t control = started(session.groups().control);
  log.result = trainer.run_until(options.windows);
  log.control_exchanges = started(session.groups().control) - control;
  if (schedule) log.saved = schedule->finish();
}

}  // namespace

std::vector<RankLog> run_script(const std::function<Script(int64_t rank)>& script,
                                const ScriptedOptions& options) {
  const TestFolder folder;
  std::vector<Job> jobs;
  for (int64_t rank = 0; rank < options.world; ++rank)
    jobs.push_back(make_job(folder.path(), script(rank), rank, options));
  prepare_data(jobs.front());
  std::vector<RankLog> logs(static_cast<size_t>(options.world));
  const auto failures = distributed::run_ranks(
      options.world, [&](const distributed::Membership& self, distributed::BoardWriter board) {
        const auto rank = static_cast<size_t>(self.rank);
        RankSession session(jobs[rank], self, std::move(board));
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
