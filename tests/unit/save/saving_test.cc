// What becomes of a run, and of the checkpoints it has, when a save fails.
#include "checkpoint/checkpoint.h"

#include "support/faulty_file_system.h"
#include "support/scripted_run.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

#include <cerrno>
#include <cstring>
#include <tuple>

namespace tally::save {
namespace {

using train::RankLog;
using train::run_script;
using train::Script;
using train::ScriptedOptions;

using checkpoint::CheckpointReader;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int64_t kWorld = 2;
constexpr int64_t kWindows = 3;

Script saving_script(int64_t windows) {
  Script script;
  script.parameters = 2;
  script.examples = {{{.gradient = {1.0, 0.5}}}, {{.gradient = {2.0, -1.0}}}};
  for (int64_t window = 0; window < windows; ++window)
    script.plans.push_back({window, {{{0}}, {{1}}}});
  return script;
}

/// Saves after each of three windows; each rank calls its own file system.
class SavingRun {
 public:
  SavingRun(bool async, const std::string& on_error, int64_t windows = kWindows) {
    options_.world = kWorld;
    options_.windows = windows;
    options_.update = true;
    options_.sets = {
        "checkpoint.every=1", std::string("checkpoint.async=") + (async ? "true" : "false"),
        "checkpoint.on_error=" + on_error, "checkpoint.folder=\"" + steps().string() + "\""};
    options_.file_system = [this](int64_t rank) { return &systems[static_cast<size_t>(rank)]; };
  }

  void save_after(int64_t window) {
    options_.sets.push_back("checkpoint.every=0");
    options_.sets.push_back("checkpoint.at=[" + std::to_string(window) + "]");
  }
  void keep(int64_t steps) { options_.sets.push_back("checkpoint.keep=" + std::to_string(steps)); }
  std::vector<RankLog> run() { return run_script(saving_script(options_.windows), options_); }
  std::filesystem::path steps() const { return folder_ / "steps"; }

  /// Windows of the steps that are there; each must be whole.
  std::vector<int64_t> whole_steps() const {
    std::vector<int64_t> windows;
    for (const auto& step : checkpoint::list_steps(steps()))
      windows.push_back(CheckpointReader::open(step).window());
    return windows;
  }

  std::vector<FaultyFileSystem> systems{kWorld};

 private:
  TemporaryFolder folder_;
  ScriptedOptions options_;
};

std::vector<double> expected_parameters() {
  SavingRun run(/*async=*/false, "stop");
  return run.run()[0].theta;
}

class FailedSave : public ::testing::TestWithParam<std::tuple<bool, int, int64_t>> {
 protected:
  bool async() const { return std::get<0>(GetParam()); }
  int64_t faulty_rank() const { return std::get<2>(GetParam()); }

  /// Which rank makes the folder is a race, so rank 1 makes between six and ten calls.
  size_t least_failures() const { return faulty_rank() == 0 ? 30 : 3; }

  /// One run for each call that the faulty rank makes for the second save. Returns how many of them
  /// failed the save, as `check` says.
  size_t for_each_call(
      const std::string& on_error,
      const std::function<bool(const SavingRun&, const std::vector<RankLog>&)>& check) {
    size_t failures = 0;
    for (size_t call = 0;; ++call) {
      SavingRun run(async(), on_error);
      FaultyFileSystem& system = run.systems[static_cast<size_t>(faulty_rank())];
      system.begin = "step-0002";
      system.end = "step-0003";
      system.fail_at = call;
      system.error = std::get<1>(GetParam());
      const std::vector<RankLog> logs = run.run();
      if (!system.failed()) return failures;
      SCOPED_TRACE(system.calls[call]);
      failures += check(run, logs) ? 1 : 0;
      if (HasFailure()) return failures;
    }
  }
};

TEST_P(FailedSave, WithWarnTrainingGoesOnAndTheOtherStepsAreWhole) {
  const std::vector<double> expected = expected_parameters();
  const size_t failures = for_each_call("warn", [&](const SavingRun& run, const auto& logs) {
    for (const RankLog& log : logs) {
      EXPECT_EQ(distributed::text_of(log.failure), "");
      EXPECT_EQ(log.theta, expected);
      EXPECT_EQ(log.saved.filename(), "step-0003");
    }
    const std::vector<int64_t> steps = run.whole_steps();
    EXPECT_THAT(steps, AnyOf(std::vector<int64_t>{3, 1}, std::vector<int64_t>{3, 2, 1}));
    return steps.size() == 2;
  });
  EXPECT_GE(failures, least_failures());
}

TEST_P(FailedSave, WithStopTheRunEndsAndTheOlderStepIsWhole) {
  const size_t failures = for_each_call("stop", [&](const SavingRun& run, const auto& logs) {
    const std::vector<int64_t> steps = run.whole_steps();
    EXPECT_EQ(steps.back(), 1);
    const bool failed = logs[0].failure != nullptr;
    if (!failed) {
      EXPECT_EQ(steps, (std::vector<int64_t>{3, 2, 1}));
      return false;
    }
    for (size_t rank = 0; rank < logs.size(); ++rank) {
      const std::string text = distributed::text_of_a<DataError>(logs[rank].failure);
      EXPECT_THAT(text, HasSubstr(static_cast<int64_t>(rank) == faulty_rank()
                                      ? strerrorname_np(std::get<1>(GetParam()))
                                      : "could not write its part; see its log"));
    }
    EXPECT_THAT(steps, AnyOf(std::vector<int64_t>{1}, std::vector<int64_t>{2, 1}));
    return true;
  });
  EXPECT_GE(failures, least_failures());
}

// Nobody looks at the save before the next one, which never comes: the control record tells all.
TEST(FailedSaves, BesideTrainingStopsAllRanksAfterTheSameWindow) {
  constexpr int64_t kMany = 2000;
  SavingRun run(/*async=*/true, "stop", kMany);
  run.save_after(2);
  run.systems[1].begin = "step-0002";
  run.systems[1].end = "step-0003";
  run.systems[1].fail_call = "fsync rank-1.safetensors";
  const std::vector<RankLog> logs = run.run();
  for (const RankLog& log : logs) {
    EXPECT_NE(distributed::text_of_a<DataError>(log.failure), "");
    EXPECT_EQ(log.result.stop, distributed::Stop::by_failed_save());
    EXPECT_EQ(log.result.windows, logs[0].result.windows);
    EXPECT_LT(log.result.windows, kMany);
  }
  EXPECT_EQ(run.whole_steps(), (std::vector<int64_t>{logs[0].result.windows}))
      << "what was trained until then is saved";
}

TEST(KeptSteps, StepsOfHigherWindowsNeitherCountNorGo) {
  SavingRun run(/*async=*/false, "stop");
  run.run();
  for (const char* name : {"step-0007", "step-0009"})
    std::filesystem::create_directory(run.steps() / name);  // of another run, and damaged
  run.keep(1);
  for (const RankLog& log : run.run()) EXPECT_EQ(distributed::text_of(log.failure), "");
  EXPECT_EQ(names_in(run.steps()),
            (std::vector<std::string>{"step-0003", "step-0007", "step-0009"}));
}

// The second save reads its step back and deletes the first.
TEST(KeptSteps, AnOldStepThatCannotBeDeletedNowGoesLater) {
  for (size_t call = 0;; ++call) {
    SavingRun run(/*async=*/true, "warn");
    run.keep(1);
    FaultyFileSystem& system = run.systems[0];
    system.begin = "step-0002";
    system.end = "step-0003";
    system.fail_at = call;
    for (const RankLog& log : run.run()) EXPECT_EQ(distributed::text_of(log.failure), "");
    if (!system.failed()) {
      EXPECT_GT(call, 60u) << "reading back and deleting take many calls";
      break;
    }
    EXPECT_EQ(run.whole_steps(), (std::vector<int64_t>{3})) << system.calls[call];
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, FailedSave,
                         ::testing::Values(std::tuple{false, EIO, 0}, std::tuple{false, ENOSPC, 1},
                                           std::tuple{true, ENOSPC, 0}, std::tuple{true, EIO, 1}));

class InterruptedSave : public ::testing::TestWithParam<bool> {};

TEST_P(InterruptedSave, EveryByteIsWritten) {
  SavingRun plain(/*async=*/false, "stop");
  plain.run();
  SavingRun interrupted(GetParam(), "stop");
  for (FaultyFileSystem& system : interrupted.systems) {
    system.interrupt = true;
    system.longest = 7;
  }
  for (const RankLog& log : interrupted.run()) EXPECT_EQ(distributed::text_of(log.failure), "");
  EXPECT_EQ(interrupted.whole_steps(), (std::vector<int64_t>{3, 2, 1}));
  for (const char* name : {"model.safetensors", "rank-0.safetensors", "rank-1.safetensors"}) {
    EXPECT_EQ(content_of(interrupted.steps() / "step-0003" / name),
              content_of(plain.steps() / "step-0003" / name))
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Async, InterruptedSave, ::testing::Bool());

}  // namespace
}  // namespace tally::save
