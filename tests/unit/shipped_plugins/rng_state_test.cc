// The descriptors of several plugins meet in this program, so each gets a name of its own.
#define tally_plugin_v1 rng_state_descriptor
#include "rng_state/rng_state.cc"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/testing/fakes.h>

namespace tally {
namespace {

using ::testing::HasSubstr;

/// Five numbers of the device's default generator.
at::Tensor draw(at::Device device) {
  return at::empty({5}, at::TensorOptions(device)).uniform_().to(at::kCPU);
}

class RngStateTest : public ::testing::Test {
 protected:
  testing::FakeContext context_;
  RngState provider_{context_};
};

TEST_F(RngStateTest, HasNothingToMapWhenTheGeneratorsAreKeyed) {
  MemoryState state;
  provider_.save(testing::FakeRun(1, 2), state);
  testing::FakeRun other(0, 4);
  EXPECT_THROW(provider_.load(other, state), DataError);
  other.set_keyed_rng(true);
  EXPECT_NO_THROW(provider_.load(other, state));
}

TEST_F(RngStateTest, IsSavedByEachRank) {
  EXPECT_EQ(provider_.state_id(), "rng_state/1");
  EXPECT_EQ(provider_.scope(), StateScope::kRank);
}

TEST_F(RngStateTest, RepeatsTheNumbersDrawnAfterTheSave) {
  testing::FakeRun run(/*rank=*/1, /*world=*/2);
  MemoryState state;
  provider_.save(run, state);
  EXPECT_EQ(state.tensor("cpu").dtype(), at::kByte);
  EXPECT_FALSE(state.has("cuda"));
  const at::Tensor first = draw(at::kCPU);
  ASSERT_FALSE(draw(at::kCPU).equal(first));
  provider_.load(run, state);
  EXPECT_TRUE(draw(at::kCPU).equal(first));
}

TEST_F(RngStateTest, RepeatsTheNumbersOfACudaDevice) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  const at::Device device(at::kCUDA, 0);
  testing::FakeRun run(/*rank=*/0, /*world=*/1, device);
  draw(device);
  MemoryState state;
  provider_.save(run, state);
  const at::Tensor first = draw(device);
  ASSERT_FALSE(draw(device).equal(first));
  provider_.load(run, state);
  EXPECT_TRUE(draw(device).equal(first));
}

TEST_F(RngStateTest, RefusesTheStateOfAnotherRankAndDrawsOn) {
  MemoryState state;
  provider_.save(testing::FakeRun(/*rank=*/1, /*world=*/2), state);
  const at::Tensor first = draw(at::kCPU);
  testing::FakeRun other_rank(/*rank=*/0, /*world=*/2);
  testing::FakeRun other_world(/*rank=*/1, /*world=*/4);
  for (testing::FakeRun* run : {&other_rank, &other_world}) {
    try {
      provider_.load(*run, state);
      ADD_FAILURE() << "rank " << run->rank() << " of " << run->world() << " was accepted";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("saved by rank 1 of 2"));
      EXPECT_THAT(error.what(), HasSubstr("restored on rank " + std::to_string(run->rank()) +
                                          " of " + std::to_string(run->world())));
    }
  }
  EXPECT_FALSE(draw(at::kCPU).equal(first)) << "a refused state was restored";
}

TEST_F(RngStateTest, RefusesAStateOfAnotherKindOfDevice) {
  testing::FakeRun run;
  MemoryState state;
  provider_.save(run, state);
  state.tensor("cuda", state.tensor("cpu"));
  try {
    provider_.load(run, state);
    FAIL() << "a CUDA generator's state was ignored on the CPU";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("saved with a CUDA generator"));
    EXPECT_THAT(error.what(), HasSubstr("restored on cpu"));
  }
}

}  // namespace
}  // namespace tally
