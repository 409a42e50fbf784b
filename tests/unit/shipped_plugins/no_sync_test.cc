// The descriptors of several plugins meet in this program, so each gets a name of its own.
#define tally_plugin_v1 no_sync_descriptor
#include "no_sync/no_sync.cc"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/testing/fakes.h>

namespace tally {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NoSyncTest, ArmsOnceAWindowBeforeTheLastForward) {
  testing::FakeContext context;
  NoSync policy(context);
  for (const int64_t count : {1, 2, 5}) {
    testing::FakeSync sync;
    for (Pass pass = {.window = 3, .index = 0, .count = count}; pass.index < count; ++pass.index) {
      EXPECT_THAT(sync.calls(), IsEmpty()) << "pass " << pass.index << " of " << count;
      policy.before_forward(pass, sync);
      if (pass.last()) {
        EXPECT_THAT(sync.calls(), ElementsAre("arm"));
      }
      policy.before_backward(pass, sync);
      policy.after_backward(pass, sync);
    }
    policy.after_window(sync);
    policy.after_step(sync);
    EXPECT_THAT(sync.calls(), ElementsAre("arm"));
  }
}

TEST(NoSyncTest, AveragesOverRanksAndLetsRanksDifferInPasses) {
  testing::FakeContext context;
  const NoSync policy(context);
  EXPECT_EQ(policy.divisor(4), 4);
  EXPECT_FALSE(policy.equal_passes());
}

}  // namespace
}  // namespace tally
