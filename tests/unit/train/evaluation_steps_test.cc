// Evaluations between the windows of a run.
#include "support/scripted_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

#include <atomic>
#include <csignal>

namespace tally::train {
namespace {

using ::testing::HasSubstr;

/// Example i has i + 1 positions whose losses are i + t / 8; the second one is not supervised.
Script uneven_script(int64_t world, int64_t windows, int64_t examples) {
  Script script;
  for (int64_t i = 0; i < examples; ++i) {
    Example example;
    for (int64_t t = 0; t <= i; ++t) {
      example.push_back({.gradient = {1.0},
                         .loss = static_cast<double>(i) + static_cast<double>(t) / 8.0,
                         .weight = t == 1 ? 0.0 : 1.0});
    }
    script.examples.push_back(example);
  }
  for (int64_t window = 0; window < windows; ++window) {
    script.plans.push_back(
        {window, std::vector<Shard>(static_cast<size_t>(world), Shard{{window % examples}})});
  }
  return script;
}

TEST(EvaluationStepsTest, EveryRankHasTheSumsOverTheSplitWhateverTheNumberOfRanks) {
  double sum = 0.0;
  int64_t count = 0;
  for (const Example& example : uneven_script(1, 1, 7).examples) {
    for (const Position& position : example) {
      sum += position.weight * position.loss;
      count += position.weight != 0.0 ? 1 : 0;
    }
  }
  // 4 batches of at most 2 examples: as many as ranks, more, and fewer.
  for (const int64_t world : {1, 2, 3, 4, 5}) {
    ScriptedOptions options{.world = world, .windows = 5};
    options.sets = {"evaluate.every=2", "evaluate.batch_size=2"};
    for (const RankLog& log : run_script_well(uneven_script(world, 5, 7), options)) {
      ASSERT_EQ(log.evaluations.size(), 2u) << world;
      EXPECT_EQ(log.evaluations[0].first, 2);
      EXPECT_EQ(log.evaluations[1].first, 4);
      for (const auto& [windows, evaluation] : log.evaluations) {
        EXPECT_EQ(evaluation.split, "validation");
        EXPECT_EQ(evaluation.sequences, 7);
        EXPECT_EQ(evaluation.terms.at(0).sum, sum) << world;
        EXPECT_EQ(evaluation.terms.at(0).count, count) << world;
        EXPECT_EQ(evaluation.loss, sum / static_cast<double>(count)) << world;
      }
      ASSERT_EQ(log.metrics.size(), 5u);
      for (size_t window = 0; window < 5; ++window)
        EXPECT_EQ(log.metrics[window].window, static_cast<int64_t>(window));
    }
  }
}

TEST(EvaluationStepsTest, TrainingIsThatOfARunWithoutEvaluations) {
  ScriptedOptions options{.world = 2, .windows = 6, .update = true};
  const auto plain = run_script_well(uneven_script(2, 6, 5), options);
  options.sets = {"evaluate.every=1", "evaluate.batch_size=1"};
  const auto evaluated = run_script_well(uneven_script(2, 6, 5), options);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(evaluated[rank].evaluations.size(), 6u) << "after the last window too";
    EXPECT_EQ(evaluated[rank].theta, plain[rank].theta);
    EXPECT_EQ(evaluated[rank].gradients, plain[rank].gradients);
  }
}

TEST(EvaluationStepsTest, AStopDoesNotWaitForItsEnd) {
  std::atomic<bool> asked{false};
  std::atomic<int64_t> forwards{0};
  ScriptedOptions options{.world = 2, .windows = 40};
  options.sets = {"evaluate.every=3", "evaluate.batch_size=1"};
  options.stop_signal = [&](int64_t rank) -> int64_t {
    return rank == 1 && asked.load() ? SIGTERM : 0;
  };
  const auto script_of = [&](int64_t rank) {
    Script script = uneven_script(2, 40, 40);
    script.on_forward = [&, rank](const Batch&) {
      if (at::GradMode::is_enabled() || rank != 1) return;
      asked = true;
      ++forwards;
    };
    return script;
  };
  for (const RankLog& log : run_script(script_of, options)) {
    EXPECT_EQ(distributed::text_of(log.failure), "");
    EXPECT_EQ(log.result.stop.signal, SIGTERM);
    EXPECT_EQ(log.result.windows, 3) << "no window after the signal";
    EXPECT_TRUE(log.evaluations.empty());
    EXPECT_EQ(log.metrics.size(), 3u) << "those of all windows";
  }
  EXPECT_LE(forwards.load(), 4) << "of 20";
}

/// Measures another thing on the batches of each rank.
class UnevenTask final : public ScalarTask {
 public:
  UnevenTask(Script script, int64_t rank) : ScalarTask(std::move(script)), rank_(rank) {}
  Measures evaluate(const Batch& /*batch*/) override {
    if (rank_ == 0) return {{"accuracy", {1.0, 1}}};
    return {{"accuracy", {1.0, 1}}, {"rare", {1.0, 1}}};
  }

 private:
  int64_t rank_;
};

TEST(EvaluationStepsTest, OtherMeasuresOnAnotherRankAreThePluginsFault) {
  ScriptedOptions options{.world = 2, .windows = 2};
  options.sets = {"evaluate.every=1"};
  options.make_task = [](const Script& script, int64_t rank) -> std::unique_ptr<Task> {
    return std::make_unique<UnevenTask>(script, rank);
  };
  for (const RankLog& log : run_script(uneven_script(2, 2, 20), options)) {
    EXPECT_THAT(distributed::text_of_a<PluginError>(log.failure),
                HasSubstr("measured other things on the batches of rank 1 than on rank 0's"));
  }
}

TEST(EvaluationStepsTest, ASplitWithoutExamplesIsAnErrorBeforeTheFirstWindow) {
  ScriptedOptions options{.world = 1, .windows = 2};
  options.sets = {"evaluate.every=1"};
  const auto logs = run_script(Script{}, options);
  EXPECT_THAT(
      distributed::text_of_a<DataError>(logs[0].failure),
      HasSubstr("the split 'validation' of task \"scripted\" (plugin test 0) has no example"));
}

}  // namespace
}  // namespace tally::train
