// The descriptors of several plugins meet in this program, so each gets a name of its own.
#define tally_plugin_v1 token_mean_descriptor
#include "token_mean/token_mean.cc"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/testing/fakes.h>

namespace tally {
namespace {

using ::testing::ElementsAre;

class TokenMeanTest : public ::testing::Test {
 protected:
  testing::FakeContext context_;
  TokenMean reducer_{context_};
};

TEST_F(TokenMeanTest, WeighsEveryTokenAlikeOnEveryRank) {
  const std::vector<TermInfo> terms = {{.name = "next_token", .unit = "token"}};
  const Aggregation mean = {.world = 2, .divisor = 2};
  // Divided by the policy's 2, one token weighs 1/48 on both ranks.
  EXPECT_THAT(reducer_.scale(terms, {{.global = 48, .local = 12}}, mean), ElementsAre(2.0 / 48.0));
  EXPECT_THAT(reducer_.scale(terms, {{.global = 48, .local = 36}}, mean), ElementsAre(2.0 / 48.0));
}

TEST_F(TokenMeanTest, WorldDoesNotAppearUnderAPolicyThatSums) {
  const std::vector<TermInfo> terms = {{.name = "next_token", .unit = "token"}};
  const Aggregation sum = {.world = 2, .divisor = 1};
  EXPECT_THAT(reducer_.scale(terms, {{.global = 48, .local = 12}}, sum), ElementsAre(1.0 / 48.0));
}

TEST_F(TokenMeanTest, ScaleIsZeroOnlyWhereNoRankHasTokens) {
  const std::vector<TermInfo> terms = {{.name = "a", .unit = "token"},
                                       {.name = "b", .unit = "token"}};
  const Aggregation mean = {.world = 2, .divisor = 2};
  EXPECT_THAT(reducer_.scale(terms, {{.global = 36, .local = 0}, {.global = 0, .local = 0}}, mean),
              ElementsAre(2.0 / 36.0, 0.0));
}

TEST_F(TokenMeanTest, MultipliesByEachTermsCoefficient) {
  const std::vector<TermInfo> terms = {{.name = "a", .unit = "token", .coefficient = 0.5},
                                       {.name = "b", .unit = "sequence", .coefficient = -3.0}};
  const Aggregation mean = {.world = 4, .divisor = 4};
  EXPECT_THAT(reducer_.scale(terms, {{.global = 8, .local = 1}, {.global = 16, .local = 1}}, mean),
              ElementsAre(0.25, -0.75));
}

}  // namespace
}  // namespace tally
