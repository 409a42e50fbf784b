// The descriptors of several plugins meet in this program, so each gets a name of its own.
#define tally_plugin_v1 sampler_state_descriptor
#include "sampler_state/sampler_state.cc"

#include <gtest/gtest.h>
#include <tally/testing/fakes.h>

namespace tally {
namespace {

TEST(SamplerStateTest, RestoresThePositionOnAnyNumberOfRanks) {
  testing::FakeContext context;
  const SamplerState provider(context);
  EXPECT_EQ(provider.state_id(), "sampler_state/1");
  EXPECT_EQ(provider.scope(), StateScope::kRun);

  testing::FakeRun saved(/*rank=*/0, /*world=*/2);
  for (int i = 0; i < 7; ++i) saved.finish_window();
  MemoryState state;
  provider.save(saved, state);

  testing::FakeRun resumed(/*rank=*/3, /*world=*/4);
  ASSERT_EQ(resumed.next_window(), 0);
  provider.load(resumed, state);
  EXPECT_EQ(resumed.next_window(), 7);
}

TEST(SamplerStateTest, RefusesAStateWithoutASampler) {
  testing::FakeContext context;
  const SamplerState provider(context);
  testing::FakeRun run;
  EXPECT_THROW(provider.load(run, MemoryState()), DataError);
}

}  // namespace
}  // namespace tally
