#include "distributed/gradient_buckets.h"

#include "random_model.h"
#include "support/rank_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tally::distributed {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kOneBucketEach = 1;

/// Runs the passes of a window, the last one armed; returns how many collectives each started.
template <class Loss>
std::vector<int64_t> run_window(FlatParameters& parameters, GradientBuckets& buckets,
                                int64_t passes, Loss&& loss) {
  parameters.clear_gradients();
  std::vector<int64_t> collectives;
  for (int64_t pass = 0; pass < passes; ++pass) {
    const int64_t before = buckets.collectives();
    if (pass == passes - 1) buckets.arm();
    loss(pass).backward();
    buckets.finish(pass == passes - 1);
    collectives.push_back(buckets.collectives() - before);
  }
  return collectives;
}

/// The window's gradient as one process computes it: the sum over ranks and passes.
template <class Loss>
at::Tensor sum_over_ranks(uint64_t seed, int64_t world, Loss&& add) {
  std::vector<NamedTensor> parameters = random_parameters(seed);
  for (NamedTensor& named : parameters)
    named.tensor.mutable_grad() = torch::zeros_like(named.tensor);
  for (int64_t rank = 0; rank < world; ++rank) add(parameters, rank);
  return gradients_of(parameters);
}

int64_t transport_collectives(const Group& group) {
  return static_cast<int64_t>(group.process_group()->getSequenceNumberForGroup());
}

TEST(GradientBucketsTest, ReducesAParameterThatOnlyAnEarlierPassUsed) {
  constexpr int64_t kWorld = 3;
  constexpr int64_t kUnused = 3;
  const at::Tensor expected = sum_over_ranks(5, kWorld, [](const auto& parameters, int64_t rank) {
    random_loss(parameters, rank, 0, 0).backward();
    random_loss(parameters, rank, 0, 1, kUnused).backward();
  });
  run_group(kWorld, [&](Group& group) {
    FlatParameters parameters(random_parameters(5));
    GradientBuckets buckets(parameters, group, kOneBucketEach, 1);
    run_window(parameters, buckets, 2, [&](int64_t pass) {
      return random_loss(parameters.named(), group.rank(), 0, pass, pass == 1 ? kUnused : -1);
    });
    EXPECT_LE(relative_difference(gradients_of(parameters.named()), expected), 5e-7);
    EXPECT_GT(parameters.named()[kUnused].tensor.grad().abs().max().item<double>(), 0.0);
  });
}

TEST(GradientBucketsTest, ReducesWhereEachRankLeavesAnotherParameterOut) {
  constexpr int64_t kWorld = 4;
  const at::Tensor expected = sum_over_ranks(6, kWorld, [](const auto& parameters, int64_t rank) {
    random_loss(parameters, rank, 0, 0, rank).backward();
  });
  run_group(kWorld, [&](Group& group) {
    FlatParameters parameters(random_parameters(6));
    GradientBuckets buckets(parameters, group, kOneBucketEach, 1);
    run_window(parameters, buckets, 1, [&](int64_t) {
      return random_loss(parameters.named(), group.rank(), 0, 0, group.rank());
    });
    EXPECT_LE(relative_difference(gradients_of(parameters.named()), expected), 5e-7);
  });
}

TEST(GradientBucketsTest, ReducesEveryWindowOfAGraphThatNeverChanges) {
  run_group(2, [](Group& group) {
    FlatParameters parameters(random_parameters(7));
    GradientBuckets buckets(parameters, group, kOneBucketEach, group.world());
    ASSERT_EQ(buckets.size(), 7U);
    for (int64_t window = 0; window < 3; ++window) {
      const at::Tensor expected =
          sum_over_ranks(7, 2,
                         [&](const auto& all, int64_t rank) {
                           for (int64_t pass = 0; pass < 2; ++pass)
                             random_loss(all, rank, window, pass).backward();
                         }) /
          2;
      const int64_t before = transport_collectives(group);
      EXPECT_THAT(run_window(parameters, buckets, 2,
                             [&](int64_t pass) {
                               return random_loss(parameters.named(), group.rank(), window, pass);
                             }),
                  ElementsAre(0, 7))
          << "window " << window;
      EXPECT_EQ(transport_collectives(group) - before, 7) << "as the process group counts them";
      EXPECT_LE(relative_difference(gradients_of(parameters.named()), expected), 5e-7)
          << "window " << window;
    }
  });
}

TEST(GradientBucketsTest, StartsOneCollectiveABucketAndNoneInOtherPasses) {
  run_group(2, [](Group& group) {
    for (const auto& [bytes, size] :
         std::vector<std::pair<int64_t, size_t>>{{1, 7}, {int64_t{1} << 20, 1}, {16 * 1024, 1}}) {
      FlatParameters parameters(random_parameters(8));
      GradientBuckets buckets(parameters, group, bytes, group.world());
      EXPECT_EQ(buckets.size(), size);
      const auto n = static_cast<int64_t>(size);
      EXPECT_THAT(run_window(parameters, buckets, 4,
                             [&](int64_t pass) {
                               return random_loss(parameters.named(), group.rank(), 0, pass);
                             }),
                  ElementsAre(0, 0, 0, n));
    }
  });
}

TEST(GradientBucketsTest, ClosesABucketBeforeItGrowsTooLarge) {
  run_group(1, [](Group& group) {
    const auto sized = [](std::vector<int64_t> sizes) {
      std::vector<NamedTensor> parameters;
      for (const int64_t size : sizes)
        parameters.push_back({"p", torch::zeros({size}).set_requires_grad(true)});
      return parameters;
    };
    const auto buckets = [&](std::vector<int64_t> sizes, int64_t bytes) {
      FlatParameters parameters(sized(std::move(sizes)));
      return GradientBuckets(parameters, group, bytes, 1).size();
    };
    EXPECT_EQ(buckets({4, 4, 4}, 32), 2U) << "reverse order: {4, 4}, {4}";
    EXPECT_EQ(buckets({4, 4, 4}, 31), 3U);
    EXPECT_EQ(buckets({4, 4, 4}, 48), 1U);
    EXPECT_EQ(buckets({100, 4}, 32), 2U) << "a parameter larger than a bucket has one for itself";
    EXPECT_EQ(buckets({2, 8, 100}, 40), 2U);
  });
}

TEST(GradientBucketsTest, DividesByTheDivisor) {
  constexpr int64_t kWorld = 3;
  run_group(kWorld, [](Group& group) {
    for (const int64_t divisor : {int64_t{1}, kWorld}) {
      FlatParameters parameters(random_parameters(9));
      GradientBuckets buckets(parameters, group, 64, divisor);
      run_window(parameters, buckets, 1, [&](int64_t) {
        at::Tensor loss = torch::zeros({});
        for (const NamedTensor& named : parameters.named())
          loss = loss + named.tensor.sum() * static_cast<double>(group.rank() + 1);
        return loss;
      });
      const at::Tensor expected =
          torch::full_like(parameters.gradients(), 6.0 / static_cast<double>(divisor));
      EXPECT_TRUE(parameters.gradients().equal(expected)) << "divisor " << divisor;
    }
  });
}

TEST(GradientBucketsTest, EqualWindowsGiveEqualBits) {
  run_group(4, [](Group& group) {
    std::vector<at::Tensor> windows;
    for (int64_t run = 0; run < 2; ++run) {  // a resume makes the buckets anew
      FlatParameters parameters(random_parameters(10));
      GradientBuckets buckets(parameters, group, 64, group.world());
      for (int64_t repeat = 0; repeat < 3; ++repeat) {
        run_window(parameters, buckets, 2, [&](int64_t pass) {
          return random_loss(parameters.named(), group.rank(), 0, pass);
        });
        windows.push_back(parameters.gradients().clone());
      }
    }
    for (const at::Tensor& window : windows) EXPECT_TRUE(window.equal(windows.front()));
  });
}

TEST(GradientBucketsTest, OneRankOverTwoShardsGivesTheBitsOfTwoRanks) {
  constexpr int64_t kPasses = 3;
  std::vector<at::Tensor> gradients;
  run_group(1, [&](Group& group) {
    FlatParameters parameters(random_parameters(14));
    GradientBuckets buckets(parameters, group, 64, 1);
    for (int64_t window = 0; window < 2; ++window) {
      run_window(parameters, buckets, 2 * kPasses, [&](int64_t pass) {
        if (pass == kPasses) buckets.end_shard();
        return random_loss(parameters.named(), pass / kPasses, window, pass % kPasses);
      });
      gradients.push_back(parameters.gradients().clone());
    }
  });
  run_group(2, [&](Group& group) {
    FlatParameters parameters(random_parameters(14));
    GradientBuckets buckets(parameters, group, 64, 1);
    for (size_t window = 0; window < 2; ++window) {
      run_window(parameters, buckets, kPasses, [&](int64_t pass) {
        return random_loss(parameters.named(), group.rank(), static_cast<int64_t>(window), pass);
      });
      EXPECT_TRUE(parameters.gradients().equal(gradients[window])) << "window " << window;
    }
  });
}

TEST(GradientBucketsTest, ShardsAreCompleteAfterAWindowThatNobodyReduced) {
  run_group(1, [](Group& group) {
    FlatParameters parameters({{"p", torch::zeros({2}).set_requires_grad(true)}});
    GradientBuckets buckets(parameters, group, 64, 1);
    const auto pass = [&](double factor, bool last) {
      (parameters.named()[0].tensor * factor).sum().backward();
      buckets.finish(last);
    };
    for (int window = 0; window < 2; ++window) {
      parameters.clear_gradients();
      pass(1, false);
      buckets.end_shard();
      pass(10, false);
      pass(100, false);
      buckets.end_shard();
      pass(1000, true);
      EXPECT_TRUE(parameters.gradients().equal(torch::full({2}, 1111.0)));
    }
  });
}

TEST(GradientBucketsTest, ARankWithNothingAddsExactlyZeroAlsoWhereParametersAreNotFinite) {
  run_group(2, [](Group& group) {
    std::vector<NamedTensor> made = random_parameters(11);
    {
      const torch::NoGradGuard no_grad;
      made[0].tensor.fill_(std::numeric_limits<float>::infinity());
      made[1].tensor.fill_(std::numeric_limits<float>::quiet_NaN());
      made[2].tensor.fill_(-std::numeric_limits<float>::infinity());
    }
    FlatParameters parameters(made);
    GradientBuckets buckets(parameters, group, 64, 1);
    run_window(parameters, buckets, 1,
               [&](int64_t) { return loss_of_nothing(parameters.named()); });
    EXPECT_EQ(parameters.gradients().abs().max().item<float>(), 0.0F);
  });
}

TEST(GradientBucketsTest, AWorldOfOneReducesNothing) {
  run_group(1, [](Group& group) {
    FlatParameters parameters(random_parameters(12));
    GradientBuckets buckets(parameters, group, kOneBucketEach, 1);
    EXPECT_THAT(
        run_window(parameters, buckets, 2,
                   [&](int64_t pass) { return random_loss(parameters.named(), 0, 0, pass); }),
        ElementsAre(0, 0));
  });
}

TEST(GradientBucketsTest, ParametersOutliveTheirBuckets) {
  run_group(1, [](Group& group) {
    FlatParameters parameters(random_parameters(13));
    {
      GradientBuckets buckets(parameters, group, kOneBucketEach, 1);
      buckets.arm();
    }
    random_loss(parameters.named(), 0, 0, 0).backward();
    EXPECT_GT(parameters.gradients().abs().max().item<double>(), 0.0);
  });
}

}  // namespace
}  // namespace tally::distributed
