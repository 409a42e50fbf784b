#include "train/window.h"

#include "support/scripted_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

#include <limits>

namespace tally::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Two ranks, two microbatches each, unlike counts: 1 + 2 and 3 + 1 positions.
Script uneven_script() {
  Script script;
  script.examples = {{{.gradient = {7.0}}},
                     {{.gradient = {1.0}}, {.gradient = {3.0}}},
                     {{.gradient = {2.0}}, {.gradient = {4.0}}, {.gradient = {6.0}}},
                     {{.gradient = {5.0}}}};
  script.plans = one_window({{{0}, {1}}, {{2}, {3}}});
  return script;
}

TEST(WindowTest, ParametersStandStillBetweenMicrobatchesAndGradientsAccumulate) {
  Script script = uneven_script();
  script.theta = 0.5;
  const auto logs = run_script_well(script, {.world = 2, .update = true});
  for (const RankLog& log : logs) {
    ASSERT_EQ(log.passes.size(), 2U);
    for (const PassLog& pass : log.passes) EXPECT_THAT(pass.theta, ElementsAre(0.5));
    EXPECT_DOUBLE_EQ(log.theta[0], 0.5 - 0.125 * 4.0);
  }
  // c * divisor / N = 2 / 7 a position: 7 after the first pass of rank 0, 12 after that of rank 1.
  EXPECT_DOUBLE_EQ(logs[0].passes[0].gradient[0], 7.0 * 2 / 7);
  EXPECT_DOUBLE_EQ(logs[1].passes[0].gradient[0], 12.0 * 2 / 7);
  for (const RankLog& log : logs) EXPECT_DOUBLE_EQ(log.passes[1].gradient[0], 28.0 / 7);
}

TEST(WindowTest, GradientsAreClearedOnceAWindow) {
  Script script = uneven_script();
  script.plans.push_back({1, script.plans[0].shards});
  script.plans.push_back({2, script.plans[0].shards});
  for (const RankLog& log : run_script_well(script, {.world = 2, .windows = 3}))
    EXPECT_THAT(log.gradients, ElementsAre(ElementsAre(4.0), ElementsAre(4.0), ElementsAre(4.0)));
}

TEST(WindowTest, ARankWithAnEmptyShareTakesPartWithZero) {
  Script script;
  script.examples = {{{.gradient = {3.0}}, {.gradient = {5.0}}}};
  for (const std::vector<Shard>& shards :
       {std::vector<Shard>{{{0}}, {}}, {{{0}}, {{}}}, {{}, {{0}}}, {{{}, {}, {}}, {{0}}}}) {
    script.plans = one_window(shards);
    for (const RankLog& log : run_script_well(script, {.world = 2}))
      EXPECT_THAT(log.gradients, ElementsAre(ElementsAre(4.0)));
  }
}

TEST(WindowTest, ANaNAtAnUnsupervisedPositionChangesNothing) {
  Script script;
  script.examples = {{{.gradient = {3.0}, .loss = 1.0},
                      {.gradient = {100.0}, .loss = kNaN, .weight = 0.0},
                      {.gradient = {5.0}, .loss = 2.0},
                      {.gradient = {100.0}, .loss = kInfinity, .weight = 0.0}}};
  script.plans = one_window({{{0}}});
  for (const RankLog& log : run_script_well(script, {})) {
    EXPECT_THAT(log.gradients, ElementsAre(ElementsAre(4.0)));
    EXPECT_EQ(log.metrics.at(0).loss.value(), 1.5);
    EXPECT_TRUE(log.metrics.at(0).finite);
    EXPECT_THAT(log.metrics.at(0).counts, ElementsAre(2));
  }
}

TEST(WindowTest, APaddedBatchCountsItsTokensOnly) {
  Script script;
  const auto token = [](double loss) { return Position{.gradient = {loss}, .loss = loss}; };
  script.examples = {{token(7), token(4), token(9)}, {token(5), token(2)}};
  script.plans = one_window({{{0, 1}}});
  for (const RankLog& log : run_script_well(script, {})) {
    EXPECT_THAT(log.metrics.at(0).counts, ElementsAre(5));
    EXPECT_DOUBLE_EQ(log.metrics.at(0).loss.value(), 27.0 / 5);
    EXPECT_DOUBLE_EQ(log.gradients.at(0).at(0), 27.0 / 5);
  }
}

TEST(WindowTest, AGradientThatIsNotFiniteSkipsTheStepOnEveryRank) {
  Script script;
  script.theta = 0.5;
  script.examples = {{{.gradient = {kNaN}}}, {{.gradient = {1.0}}}, {{.gradient = {kInfinity}}}};
  script.plans = {{0, {{{1}}, {{0}}}}, {1, {{{2}}, {{1}}}}, {2, {{{1}}, {{1}}}}};
  for (const std::string clip : {"0", "10"}) {
    ScriptedOptions options{.world = 2, .windows = 3, .update = true};
    options.sets = {"train.clip_norm=" + clip};
    for (const RankLog& log : run_script_well(script, options)) {
      EXPECT_DOUBLE_EQ(log.theta[0], 0.5 - 0.125) << "one step of three";
      ASSERT_EQ(log.metrics.size(), 3U);
      EXPECT_FALSE(log.metrics[0].finite);
      EXPECT_FALSE(log.metrics[1].finite);
      EXPECT_TRUE(log.metrics[2].finite);
    }
  }
}

TEST(WindowTest, EqualPassesPutsTheExtraOnesFirstAndEmpty) {
  Script script;
  script.examples = {{{.gradient = {3.0}}}, {{.gradient = {6.0}}}};
  script.plans = one_window({{{0}, {0}, {0}}, {{1}}});
  ScriptedOptions options{.world = 2, .policy = "equal_passes"};
  const auto shards = [](const RankLog& log) {
    std::vector<int64_t> result;
    for (const PassLog& pass : log.passes) result.push_back(pass.pass.shard);
    return result;
  };
  const auto equal = run_script_well(script, options);
  EXPECT_THAT(shards(equal[0]), ElementsAre(0, 0, 0));
  EXPECT_THAT(shards(equal[1]), ElementsAre(-1, -1, 1));
  EXPECT_EQ(equal[1].passes[1].gradient[0], 0.0);
  options.policy = "no_sync";
  const auto own = run_script_well(script, options);
  EXPECT_THAT(shards(own[1]), ElementsAre(1));
  for (const RankLog& log : {equal[0], equal[1], own[0], own[1]})
    EXPECT_THAT(log.gradients, ElementsAre(ElementsAre(15.0 / 4)));
}

TEST(WindowTest, APolicyMayReduceByItselfAfterTheWindow) {
  for (const RankLog& log :
       run_script_well(uneven_script(), {.world = 2, .policy = "after_window"})) {
    EXPECT_DOUBLE_EQ(log.gradients.at(0).at(0), 4.0);
  }
}

/// A reducer whose results break the contract.
class Broken final : public LossReducer {
 public:
  explicit Broken(std::string how) : how_(std::move(how)) {}
  std::vector<int64_t> count(const Batch& batch) const override {
    if (how_ == "count") return {1, 2};
    if (how_ == "negative") return {-1};
    return LossReducer::count(batch);
  }
  std::vector<double> scale(const std::vector<TermInfo>& /*terms*/,
                            const std::vector<TermCounts>& /*counts*/,
                            const Aggregation& /*aggregation*/) const override {
    if (how_ == "scale") return {};
    return {1.0};
  }
  at::Tensor reduce(const Batch& batch, const std::vector<at::Tensor>& losses,
                    const at::Tensor& scales) const override {
    if (how_ == "reduce") return losses[0];
    return LossReducer::reduce(batch, losses, scales);
  }

 private:
  std::string how_;
};

TEST(WindowTest, AReducerThatBreaksItsContractIsNamedWithThePlace) {
  for (const auto& [how, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"count", "counted 2 terms of 1"},
           {"negative", "counted 1 terms of 1, or a negative number"},
           {"scale", "scale must return one number a term"},
           {"reduce", "reduce must return a scalar tensor"}}) {
    ScriptedOptions options;
    options.make_reducer = [how = how] { return std::make_unique<Broken>(how); };
    Script script = uneven_script();
    script.plans = one_window({{{0}, {1}}});
    EXPECT_THAT(
        distributed::text_of_a<PluginError>(run_script(script, options)[0].failure),
        AllOf(HasSubstr("loss_reducer \"scripted\" (plugin test 0) failed at window 0, rank 0: "),
              HasSubstr(sentence)));
  }
}

TEST(WindowTest, ALostRankEndsTheOthersWithItsPlace) {
  Script good = uneven_script();
  good.plans.push_back({1, good.plans[0].shards});
  const auto logs = run_script(
      [&](int64_t rank) {
        Script script = good;
        if (rank == 1)
          script.on_forward = [](const Batch&) { throw std::runtime_error("the model broke"); };
        return script;
      },
      {.world = 2, .windows = 2});
  EXPECT_THAT(distributed::text_of_a<PluginError>(logs[1].failure),
              HasSubstr("task \"scripted\" (plugin test 0) failed at window 0, rank 1: the model "
                        "broke"));
  EXPECT_THAT(distributed::text_of_a<RankError>(logs[0].failure),
              HasSubstr("rank 0 lost contact in the "));
}

TEST(ZeroLossTest, ReachesEveryParameterWithExactlyZero) {
  const auto parameter = [](std::vector<float> values) {
    return torch::tensor(values).set_requires_grad(true);
  };
  const auto big = std::numeric_limits<float>::infinity();
  distributed::FlatParameters parameters(
      {{"a", parameter({big, 1.0F})},
       {"b", parameter({std::numeric_limits<float>::quiet_NaN()})},
       {"c", torch::full({}, -big).set_requires_grad(true)}});
  const at::Tensor loss = zero_loss(parameters);
  EXPECT_EQ(loss.item<float>(), 0.0F);
  loss.backward();
  EXPECT_TRUE(parameters.gradients().equal(torch::zeros({4})));
}

}  // namespace
}  // namespace tally::train
