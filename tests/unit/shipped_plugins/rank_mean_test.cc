// The descriptors of several plugins meet in this program, so each gets a name of its own.
#define tally_plugin_v1 rank_mean_descriptor
#include "rank_mean/rank_mean.cc"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/testing/fakes.h>

namespace tally {
namespace {

using ::testing::ElementsAre;

class RankMeanTest : public ::testing::Test {
 protected:
  testing::FakeContext context_;
  RankMean reducer_{context_};
  const std::vector<TermInfo> terms_ = {{.name = "next_token", .unit = "token"}};
};

TEST_F(RankMeanTest, WeighsATokenByItsOwnRanksCount) {
  // Divided by the policy's 2, one token weighs 1/24 on the one rank and 1/72 on the other.
  const Aggregation mean = {.world = 2, .divisor = 2};
  EXPECT_THAT(reducer_.scale(terms_, {{.global = 48, .local = 12}}, mean),
              ElementsAre(2.0 / (2.0 * 12.0)));
  EXPECT_THAT(reducer_.scale(terms_, {{.global = 48, .local = 36}}, mean),
              ElementsAre(2.0 / (2.0 * 36.0)));
  const Aggregation sum = {.world = 2, .divisor = 1};
  EXPECT_THAT(reducer_.scale(terms_, {{.global = 48, .local = 12}}, sum), ElementsAre(1.0 / 24.0));
  EXPECT_THAT(reducer_.scale(terms_, {{.global = 48, .local = 36}}, sum), ElementsAre(1.0 / 72.0));
}

TEST_F(RankMeanTest, ScaleIsZeroWhereThisRankHasNoTokens) {
  const Aggregation mean = {.world = 2, .divisor = 2};
  EXPECT_THAT(reducer_.scale(terms_, {{.global = 36, .local = 0}}, mean), ElementsAre(0.0));
}

TEST_F(RankMeanTest, EqualsTheTokenMeanOnOneRank) {
  const Aggregation alone = {.world = 1, .divisor = 1};
  EXPECT_THAT(reducer_.scale(terms_, {{.global = 48, .local = 48}}, alone),
              ElementsAre(1.0 / 48.0));
}

TEST_F(RankMeanTest, MultipliesByTheCoefficient) {
  const std::vector<TermInfo> terms = {{.name = "a", .unit = "token", .coefficient = 0.5}};
  const Aggregation mean = {.world = 2, .divisor = 2};
  EXPECT_THAT(reducer_.scale(terms, {{.global = 48, .local = 8}}, mean), ElementsAre(0.0625));
}

}  // namespace
}  // namespace tally
