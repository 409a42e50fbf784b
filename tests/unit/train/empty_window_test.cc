#include "support/scripted_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

namespace tally::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Window 1 of three has no supervised position anywhere.
Script script_with_an_empty_window() {
  Script script;
  script.examples = {{{.gradient = {2.0}}, {.gradient = {4.0}}},
                     {{.gradient = {100.0}, .weight = 0.0}}};
  script.plans = {{0, {{{0}}, {{0}}}}, {1, {{{1}}, {{1}}}}, {2, {{{0}}, {{1}}}}};
  return script;
}

TEST(EmptyWindowTest, EveryRankEndsWithTheSameErrorNamingTheWindow) {
  std::vector<std::string> texts;
  for (const RankLog& log :
       run_script(script_with_an_empty_window(), {.world = 2, .windows = 3, .update = true})) {
    texts.push_back(distributed::text_of_a<DataError>(log.failure));
    EXPECT_DOUBLE_EQ(log.theta[0], -0.125 * 3.0) << "window 0 was an update, and nothing after it";
  }
  EXPECT_EQ(texts[0],
            "window 1 has no supervised position on any rank, so its mean does not exist; check "
            "the labels, or set train.on_empty_window = \"skip\"");
  EXPECT_EQ(texts[1], texts[0]);
}

TEST(EmptyWindowTest, SkippingLeavesTheParametersAlone) {
  ScriptedOptions options{.world = 2, .windows = 3, .update = true};
  options.sets = {"train.on_empty_window=skip", "optimizer.momentum=0.5"};
  for (const RankLog& log : run_script_well(script_with_an_empty_window(), options)) {
    EXPECT_EQ(log.result.windows, 3);
    EXPECT_EQ(log.gradients.size(), 2U);
    // Momentum 3 after window 0; 0.5 * 3 + 3 after window 2: the skipped one does not decay it.
    EXPECT_DOUBLE_EQ(log.theta[0], -0.125 * (3.0 + 4.5));
    ASSERT_EQ(log.metrics.size(), 3U);
    EXPECT_THAT(log.metrics[1].counts, ElementsAre(0));
    EXPECT_EQ(log.metrics[1].loss, std::nullopt);
  }
}

TEST(EmptyWindowTest, AWindowWithoutAnyMicrobatchIsEmptyToo) {
  Script script;
  script.plans = one_window({{}, {{}}});
  for (const RankLog& log : run_script(script, {.world = 2}))
    EXPECT_THAT(distributed::text_of_a<DataError>(log.failure),
                HasSubstr("window 0 has no supervised position on any rank"));
}

TEST(EmptyWindowTest, OneTermWithoutPositionsIsAbsentAndTheOthersTrain) {
  Script script;
  script.terms = {{.name = "main", .unit = "token"},
                  {.name = "aux", .unit = "token", .coefficient = 10.0}};
  script.examples = {{{.gradient = {2.0}}, {.gradient = {4.0}}}};
  script.plans = one_window({{{0}}, {{0}}});
  for (const RankLog& log : run_script_well(script, {.world = 2}))
    EXPECT_THAT(log.gradients, ElementsAre(ElementsAre(3.0)));
}

}  // namespace
}  // namespace tally::train
