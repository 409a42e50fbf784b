// What all ranks must agree on before a window, and how they end together.
#include "support/scripted_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

#include <atomic>
#include <csignal>

namespace tally::train {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

Script steady_script(int64_t world, int64_t windows) {
  Script script;
  script.examples = {{{.gradient = {1.0}}}, {{.gradient = {2.0}}}};
  for (int64_t window = 0; window < windows; ++window) {
    script.plans.push_back(
        {window, std::vector<Shard>(static_cast<size_t>(world), Shard{{window % 2}})});
  }
  return script;
}

TEST(SamplerAgreementTest, ASamplerThatDiffersByRankIsNamedOnEveryRank) {
  const auto logs = run_script(
      [](int64_t rank) {
        Script script = steady_script(3, 4);
        if (rank == 2) script.plans[2].shards[0] = {{1}};
        return script;
      },
      {.world = 3, .windows = 4});
  for (const RankLog& log : logs) {
    EXPECT_THAT(distributed::text_of_a<PluginError>(log.failure),
                AllOf(HasSubstr("the sampler's plans differ: rank 0 has window 2, data, chain "),
                      HasSubstr("rank 2 has window 2, data, chain "), Not(HasSubstr("rank 1"))));
  }
}

TEST(SamplerAgreementTest, ASamplerThatEndsEarlierOnOneRankIsNamed) {
  const auto logs = run_script([](int64_t rank) { return steady_script(2, rank == 1 ? 2 : 3); },
                               {.world = 2, .windows = 5});
  for (const RankLog& log : logs) {
    EXPECT_THAT(distributed::text_of_a<PluginError>(log.failure),
                HasSubstr("rank 1 has window 2, no data left, chain "));
  }
}

TEST(SamplerAgreementTest, TheWindowBeforeIsRunOnEveryRankAndTheReasonIsOnTheBoard) {
  ScriptedOptions options{.world = 3, .windows = 4};
  std::shared_ptr<distributed::Board> board;
  options.after_pass = [&](run::RankSession& session, const Pass&) {
    if (session.rank() == 0) board = session.board().board();
    // The loader has long failed when the others come to this window.
    if (session.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  const auto logs = run_script(
      [](int64_t rank) {
        Script script = steady_script(3, 4);
        if (rank == 2) script.plans[2].shards[0] = {{1}};
        return script;
      },
      options);
  for (const RankLog& log : logs) EXPECT_EQ(log.gradients.size(), 2U);
  for (int64_t rank = 0; rank < 3; ++rank)
    EXPECT_THAT(board->read(rank).message.data(), HasSubstr("the sampler's plans differ"));
}

TEST(SamplerAgreementTest, TheRunEndsWhereTheDataEnd) {
  for (const RankLog& log : run_script_well(steady_script(2, 3), {.world = 2, .windows = 50})) {
    EXPECT_EQ(log.result.windows, 3);
    EXPECT_EQ(log.result.stop.signal, 0);
    EXPECT_EQ(log.gradients.size(), 3U);
    EXPECT_EQ(log.metrics.size(), 3U) << "the last window is reported too";
  }
}

TEST(SamplerAgreementTest, APlanOfAnotherWindowOrWithOtherShardsIsRefused) {
  Script script = steady_script(1, 2);
  script.plans[1].window = 7;
  EXPECT_THAT(
      distributed::text_of_a<PluginError>(run_script(script, {.windows = 2})[0].failure),
      HasSubstr("sampler \"scripted\" (plugin test 0) failed at window 1, rank 0: planned window 7 "
                "with 1 shard, but window 1 with 1 (window.shards) was asked for"));
  script = steady_script(3, 1);
  EXPECT_THAT(
      distributed::text_of_a<PluginError>(run_script(script, {.world = 1, .shards = 2})[0].failure),
      HasSubstr("planned window 0 with 3 shards, but window 0 with 2"));
}

TEST(StopTest, AllRanksStopAtTheSameWindowAtMostTwoLater) {
  std::atomic<bool> asked{false};
  std::atomic<int64_t> asked_in{-1};
  ScriptedOptions options{.world = 3, .windows = 40};
  options.stop_signal = [&](int64_t rank) -> int64_t {
    return rank == 1 && asked.load() ? SIGTERM : 0;
  };
  options.after_pass = [&](run::RankSession& session, const Pass& pass) {
    if (session.rank() != 1 || pass.window != 5) return;
    asked_in = pass.window;
    asked = true;
  };
  const auto logs = run_script_well(steady_script(3, 40), options);
  ASSERT_EQ(asked_in.load(), 5);
  for (const RankLog& log : logs) {
    EXPECT_EQ(log.result.stop.signal, SIGTERM);
    EXPECT_EQ(log.result.windows, logs[0].result.windows);
    EXPECT_GE(log.result.windows, 6) << "the window under way is finished";
    EXPECT_LE(log.result.windows, 5 + 1 + 2);
    EXPECT_EQ(log.metrics.size(), static_cast<size_t>(log.result.windows));
  }
}

TEST(StopTest, ASignalBeforeTheFirstWindowStopsBeforeIt) {
  ScriptedOptions options{.world = 2, .windows = 3};
  options.stop_signal = [](int64_t rank) -> int64_t { return rank == 0 ? SIGINT : SIGTERM; };
  for (const RankLog& log : run_script_well(steady_script(2, 3), options)) {
    EXPECT_EQ(log.result.windows, 0);
    EXPECT_EQ(log.result.stop.signal, SIGINT) << "the smallest, on every rank";
  }
}

TEST(WorldSizeTest, TheSameRecipeGivesTheSameLossesOnOneTwoAndFourRanks) {
  // Unlike counts and a curved loss, so that every window's gradient and loss hang on the last's.
  Script script;
  script.dtype = at::kFloat;
  script.theta = 0.3F;
  script.parameters = 2;
  for (int64_t id = 0; id < 12; ++id) {
    Example example;
    for (int64_t i = 0; i <= id % 5; ++i) {
      const auto x = static_cast<double>(id * 7 + i * 3 % 11);
      example.push_back({.gradient = {std::sin(x), std::cos(2.0 * x)},
                         .loss = 1.0 + std::sin(3.0 * x),
                         .weight = (id + i) % 4 == 1 ? 0.0 : 1.0,
                         .curvature = 1.0 + std::cos(x)});
    }
    script.examples.push_back(example);
  }
  for (int64_t window = 0; window < 5; ++window) {
    WindowPlan plan{window, {}};
    for (int64_t shard = 0; shard < 4; ++shard) {
      const int64_t first = window * 5 + shard * 3;
      plan.shards.push_back({{first % 12, (first + 1) % 12}, {(first + 2) % 12}});
      if (shard == 3 && window == 2) plan.shards.back().clear();
    }
    script.plans.push_back(plan);
  }
  std::vector<std::vector<double>> losses;
  for (const int64_t world : {1, 2, 4}) {
    ScriptedOptions options{.world = world, .shards = 4, .windows = 5, .update = true};
    const auto logs = run_script_well(script, options);
    losses.emplace_back();
    for (const WindowMetrics& metrics : logs[0].metrics)
      losses.back().push_back(metrics.loss.value());
    for (const RankLog& log : logs) EXPECT_EQ(log.theta, logs[0].theta) << "equal bits";
  }
  ASSERT_THAT(losses, Each(::testing::SizeIs(5)));
  EXPECT_GT(std::abs(losses[0][4] - losses[0][0]), 1e-3) << "the losses move";
  for (size_t window = 0; window < 5; ++window) {
    EXPECT_NEAR(losses[1][window] / losses[0][window], 1.0, 1e-6) << "window " << window;
    EXPECT_NEAR(losses[2][window] / losses[0][window], 1.0, 1e-6) << "window " << window;
  }
}

}  // namespace
}  // namespace tally::train
