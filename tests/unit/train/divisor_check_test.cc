#include "train/divisor_check.h"

#include "support/scripted_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

namespace tally::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Script one_position() {
  Script script;
  script.parameters = 2;
  script.examples = {{{.gradient = {3.0, 5.0}}}};
  return script;
}

std::vector<RankLog> run_policy(const std::string& policy, int64_t world) {
  Script script = one_position();
  script.plans = one_window(std::vector<Shard>(static_cast<size_t>(world), Shard{{0}}));
  return run_script(script, {.world = world, .policy = policy});
}

class DivisorCheckTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(DivisorCheckTest, HonestPoliciesPassAndNothingOfTheCheckIsLeft) {
  for (const std::string policy : {"no_sync", "sum", "arms_late", "equal_passes", "every_pass",
                                   "after_window", "shard_by_shard"}) {
    for (const RankLog& log : run_policy(policy, GetParam())) {
      EXPECT_EQ(distributed::text_of(log.failure), "") << policy;
      ASSERT_EQ(log.gradients.size(), 1U) << policy;
      EXPECT_NEAR(log.gradients[0][0], 3.0, 1e-12) << policy;
      EXPECT_NEAR(log.gradients[0][1], 5.0, 1e-12) << policy;
    }
  }
}

/// Every rank must say the same: a rank that by chance holds what it should would go on alone.
void expect_refused(const std::string& policy, int64_t world, const std::string& sentence) {
  for (const RankLog& log : run_policy(policy, world)) {
    EXPECT_THAT(distributed::text_of_a<PluginError>(log.failure),
                AllOf(HasSubstr("sync_policy \"" + policy + "\""), HasSubstr(sentence)));
    EXPECT_TRUE(log.gradients.empty());
  }
}

TEST_P(DivisorCheckTest, APolicyThatDividesTwiceIsRefused) {
  const auto world = static_cast<double>(GetParam());
  expect_refused(
      "divides_twice", GetParam(),
      fmt::format(
          "says that it divides the sum over {0} ranks by {0}, so a window of two shards in "
          "which every gradient of rank r adds up to 15 * (r + 1) must leave {1:g}, but rank "
          "0 holds {2:g}",
          GetParam(), 15 * (world + 1) / 2, 15 * (world + 1) / 2 / world));
}

TEST_P(DivisorCheckTest, APolicyThatSumsButSaysMeanIsRefused) {
  const auto world = static_cast<double>(GetParam());
  expect_refused("says_mean_but_sums", GetParam(),
                 fmt::format("must leave {:g}, but rank 0 holds {:g}", 15 * (world + 1) / 2,
                             15 * world * (world + 1) / 2));
}

TEST_P(DivisorCheckTest, APolicyThatExchangesNothingIsRefused) {
  expect_refused("never_arms", GetParam(), "but rank 0 holds 15; correct its divisor()");
}

TEST_P(DivisorCheckTest, APolicyThatReducesIncrementsOverShardsIsRefused) {
  // 1 + 2 of the first shard, 4 of the second, and in the last pass 8 and the first shard again.
  const auto world = static_cast<double>(GetParam());
  expect_refused(
      "increments", GetParam(),
      fmt::format("must leave {:g}, but rank 0 holds {:g}; correct its divisor(), or what "
                  "it does in each pass (see Sync::gradients)",
                  15 * (world + 1) / 2, 18 * (world + 1) / 2));
}

TEST_P(DivisorCheckTest, ADivisorBelowOneIsRefused) {
  expect_refused("divisor_zero", GetParam(), "has divisor 0 for");
}

INSTANTIATE_TEST_SUITE_P(Worlds, DivisorCheckTest, ::testing::Values(2, 3),
                         [](const auto& test) { return fmt::format("world{}", test.param); });

TEST(DivisorCheckOfOneRankTest, NothingToExchangeIsNothingToRefuse) {
  for (const std::string policy : {"no_sync", "sum", "never_arms"}) {
    const RankLog log = run_policy(policy, 1).at(0);
    EXPECT_EQ(distributed::text_of(log.failure), "") << policy;
    EXPECT_THAT(log.gradients, ElementsAre(ElementsAre(3.0, 5.0))) << policy;
  }
}

}  // namespace
}  // namespace tally::train
