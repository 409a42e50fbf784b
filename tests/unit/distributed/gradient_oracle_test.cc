#include "distributed/gradient_buckets.h"
#include "reducer_oracle.h"
#include "support/rank_threads.h"

#include <gtest/gtest.h>

namespace tally::distributed {
namespace {

/// (world, bucket bytes, seed of the model)
class GradientOracleTest : public ::testing::TestWithParam<std::tuple<int64_t, int64_t, uint64_t>> {
};

/// Rank r runs 1 + (r + window) % 3 microbatches, so the ranks' shares are uneven.
int64_t microbatches_of(int64_t rank, int64_t window) { return 1 + (rank + window) % 3; }

TEST_P(GradientOracleTest, EqualsTheReducerToRounding) {
  const auto [world, bucket_bytes, seed] = GetParam();
  run_group(world, [&](Group& group) {
    FlatParameters ours(random_parameters(seed));
    GradientBuckets buckets(ours, group, bucket_bytes, group.world());
    ReducerOracle oracle(random_parameters(seed), group);
    for (int64_t window = 0; window < 3; ++window) {
      ours.clear_gradients();
      oracle.clear();
      const int64_t count = microbatches_of(group.rank(), window);
      for (int64_t k = 0; k < count; ++k) {
        if (k == count - 1) buckets.arm();
        random_loss(ours.named(), group.rank(), window, k).backward();
        buckets.finish(k == count - 1);
      }
      for (int64_t k = 0; k < count; ++k) {
        if (k == count - 1) oracle.arm();
        random_loss(oracle.parameters(), group.rank(), window, k).backward();
      }
      oracle.finish();
      const at::Tensor expected = gradients_of(oracle.parameters());
      ASSERT_GT(expected.abs().max().item<double>(), 0.01);
      EXPECT_LE(relative_difference(gradients_of(ours.named()), expected), 5e-7)
          << "window " << window << ", rank " << group.rank();
    }
  });
}

TEST_P(GradientOracleTest, EqualsTheReducerWhereOneRankHasNothing) {
  const auto [world, bucket_bytes, seed] = GetParam();
  run_group(world, [&](Group& group) {
    FlatParameters ours(random_parameters(seed));
    GradientBuckets buckets(ours, group, bucket_bytes, group.world());
    ReducerOracle oracle(random_parameters(seed), group);
    oracle.clear();
    const auto loss = [&](const std::vector<NamedTensor>& parameters) {
      return group.rank() == 0 ? loss_of_nothing(parameters)
                               : random_loss(parameters, group.rank(), 0, 0);
    };
    buckets.arm();
    loss(ours.named()).backward();
    buckets.finish(true);
    oracle.arm();
    loss(oracle.parameters()).backward();
    oracle.finish();
    EXPECT_LE(relative_difference(gradients_of(ours.named()), gradients_of(oracle.parameters())),
              5e-7);
  });
}

INSTANTIATE_TEST_SUITE_P(WorldsAndBuckets, GradientOracleTest,
                         ::testing::Combine(::testing::Values(2, 3, 4),
                                            ::testing::Values(1, 64, int64_t{25} << 20),
                                            ::testing::Values(1, 2, 3)),
                         [](const auto& test) {
                           return fmt::format("world{}_bytes{}_seed{}", std::get<0>(test.param),
                                              std::get<1>(test.param), std::get<2>(test.param));
                         });

/// Its answer to a parameter that the last pass leaves out: an error, and nothing reduced. Ours
/// must do better, so the comparison above keeps to models that it can handle.
TEST(ReducerOracleTest, RefusesAParameterThatTheLastPassLeavesOut) {
  run_group(2, [](Group& group) {
    ReducerOracle oracle(random_parameters(4), group);
    oracle.clear();
    random_loss(oracle.parameters(), group.rank(), 0, 0).backward();
    oracle.arm();
    random_loss(oracle.parameters(), group.rank(), 0, 1, /*unused=*/3).backward();
    EXPECT_THROW(oracle.finish(), c10::Error);
  });
}

}  // namespace
}  // namespace tally::distributed
