// The descriptors of two plugins meet in this program, so each gets a name of its own.
#define tally_plugin_v1 token_mean_descriptor
#define kTallyHooks token_mean_hooks
#include "token_mean/token_mean.cc"
#undef tally_plugin_v1
#undef kTallyHooks
#define tally_plugin_v1 rank_mean_descriptor
#define kTallyHooks rank_mean_hooks
#include "rank_mean/rank_mean.cc"
#undef tally_plugin_v1
#undef kTallyHooks

#include "verify/loss_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/testing/fakes.h>
#include <torch/torch.h>

namespace tally::verify {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMean = 2;
constexpr int64_t kSum = 1;

auto near(double value) { return DoubleNear(value, 1e-15); }

class LossCheckTest : public ::testing::Test {
 protected:
  testing::FakeContext context_;
  TokenMean token_mean_{context_};
  RankMean rank_mean_{context_};
};

TEST(HandWindowTest, FormulasOfTheUnequalWindow) {
  EXPECT_EQ(mean_of_means(unequal_window()), 2.0);
  EXPECT_EQ(global_mean(unequal_window()), 2.5);
}

TEST(HandWindowTest, MicrobatchesChangeNeitherFormula) {
  EXPECT_EQ(mean_of_means(two_microbatch_window()), 2.0);
  EXPECT_EQ(global_mean(two_microbatch_window()), 2.5);
}

TEST(HandWindowTest, FormulasAgreeInTheBlindSpots) {
  for (const HandWindow& window : {equal_counts_window(), equal_means_window()}) {
    EXPECT_EQ(mean_of_means(window), 2.0);
    EXPECT_EQ(global_mean(window), 2.0);
  }
}

TEST_F(LossCheckTest, GlobalMeanOfTwelveAndThirtySix) {
  const ReducedWindow window = reduce_by_hand(token_mean_, unequal_window(), kMean);
  EXPECT_THAT(window.tokens, ElementsAre(12, 36));
  EXPECT_THAT(window.sums, ElementsAre(12.0, 108.0));
  EXPECT_THAT(window.contributions, ElementsAre(near(0.5), near(4.5)));
  EXPECT_THAT(window.weights, ElementsAre(near(1.0 / 48), near(1.0 / 48)));
  EXPECT_THAT(window.objective, near(2.5));
  EXPECT_EQ(window.unsupervised_gradient, 0.0);
}

TEST_F(LossCheckTest, MeanOfMeansOfTwelveAndThirtySix) {
  const ReducedWindow window = reduce_by_hand(rank_mean_, unequal_window(), kMean);
  EXPECT_THAT(window.contributions, ElementsAre(near(1.0), near(3.0)));
  EXPECT_THAT(window.weights, ElementsAre(near(1.0 / 24), near(1.0 / 72)));
  EXPECT_THAT(window.objective, near(2.0));
}

TEST_F(LossCheckTest, APolicyThatSumsChangesContributionsOnly) {
  const ReducedWindow window = reduce_by_hand(token_mean_, unequal_window(), kSum);
  EXPECT_THAT(window.contributions, ElementsAre(near(0.25), near(2.25)));
  EXPECT_THAT(window.weights, ElementsAre(near(1.0 / 48), near(1.0 / 48)));
  EXPECT_THAT(window.objective, near(2.5));
}

TEST_F(LossCheckTest, OneParameterAtZero) {
  const OneParameter right = one_parameter_example(token_mean_, kMean);
  EXPECT_THAT(right.losses, ElementsAre(1.0, 1.0));
  EXPECT_THAT(right.gradient, DoubleNear(1.0, 1e-12));
  const OneParameter wrong = one_parameter_example(rank_mean_, kMean);
  EXPECT_THAT(wrong.losses, ElementsAre(1.0, 1.0));
  EXPECT_THAT(wrong.gradient, DoubleNear(0.0, 1e-12));
}

TEST_F(LossCheckTest, TokenMeanIsTheGlobalMean) {
  for (const int64_t divisor : {kMean, kSum}) {
    const LossCheck check = check_loss(token_mean_, divisor, Formula::kGlobalMean);
    EXPECT_THAT(check.unexpected, IsEmpty());
    EXPECT_THAT(check.two_microbatches.objective, near(2.5));
    EXPECT_THAT(check.two_microbatches.tokens, ElementsAre(12, 36));
    EXPECT_THAT(check.divided_again, near(1.25));
    EXPECT_THAT(check.equal_counts.objective, near(2.0));
    EXPECT_THAT(check.equal_means.objective, near(2.0));
  }
}

TEST_F(LossCheckTest, RankMeanIsTheMeanOfMeans) {
  for (const int64_t divisor : {kMean, kSum}) {
    const LossCheck check = check_loss(rank_mean_, divisor, Formula::kMeanOfMeans);
    EXPECT_THAT(check.unexpected, IsEmpty());
    EXPECT_THAT(check.two_microbatches.objective, near(2.0));
    EXPECT_THAT(check.divided_again, near(1.0));
    EXPECT_THAT(check.equal_counts.objective, near(2.0));
    EXPECT_THAT(check.equal_means.objective, near(2.0));
  }
}

TEST_F(LossCheckTest, RankMeanThatShouldBeTheGlobalMeanIsCaught) {
  const LossCheck check = check_loss(rank_mean_, kMean, Formula::kGlobalMean);
  EXPECT_THAT(check.unexpected, Contains("12 and 36 tokens: the objective is 2 and should be 2.5"));
  EXPECT_THAT(check.unexpected, Contains("one parameter: the gradient is 0 and should be 1"));
}

TEST_F(LossCheckTest, TokenMeanThatShouldBeWrongIsCaught) {
  EXPECT_THAT(check_loss(token_mean_, kMean, Formula::kMeanOfMeans).unexpected,
              Contains("12 and 36 tokens: the objective is 2.5 and should be 2"));
  EXPECT_THAT(check_loss(token_mean_, kMean, Formula::kNotGlobalMean).unexpected,
              ElementsAre("12 and 36 tokens: it is the global mean, and should not be"));
  EXPECT_TRUE(check_loss(rank_mean_, kMean, Formula::kNotGlobalMean).as_expected());
}

/// Scaled for a mean over ranks, whatever the policy divides by.
class AlwaysTimesWorld final : public LossReducer {
 public:
  std::vector<double> scale(const std::vector<TermInfo>& /*terms*/,
                            const std::vector<TermCounts>& counts,
                            const Aggregation& aggregation) const override {
    return {static_cast<double>(aggregation.world) / static_cast<double>(counts.front().global)};
  }
};

TEST_F(LossCheckTest, MultiplyingByTheWorldShowsUnderAPolicyThatSums) {
  const AlwaysTimesWorld reducer;
  EXPECT_TRUE(check_loss(reducer, kMean, Formula::kGlobalMean).as_expected());
  EXPECT_THAT(check_loss(reducer, kSum, Formula::kGlobalMean).unexpected,
              Contains("12 and 36 tokens: the objective is 5 and should be 2.5"));
}

/// The scale is right, but what it multiplies is a mean over the microbatch.
class MeanInReduce final : public LossReducer {
 public:
  std::vector<double> scale(const std::vector<TermInfo>& /*terms*/,
                            const std::vector<TermCounts>& counts,
                            const Aggregation& aggregation) const override {
    return {static_cast<double>(aggregation.divisor) / static_cast<double>(counts.front().global)};
  }
  at::Tensor reduce(const Batch& batch, const std::vector<at::Tensor>& losses,
                    const at::Tensor& scales) const override {
    const at::Tensor sum = LossReducer::reduce(batch, losses, scales);
    return sum / batch.terms.front().weights.sum();
  }
};

TEST_F(LossCheckTest, AMeanHiddenInReduceIsCaught) {
  const LossCheck check = check_loss(MeanInReduce(), kMean, Formula::kGlobalMean);
  EXPECT_THAT(check.unexpected, Contains(HasSubstr("the weight of one token on rank 0")));
}

/// Multiplies by the mask instead of selecting.
class TimesZero final : public LossReducer {
 public:
  std::vector<double> scale(const std::vector<TermInfo>& /*terms*/,
                            const std::vector<TermCounts>& counts,
                            const Aggregation& aggregation) const override {
    return {static_cast<double>(aggregation.divisor) / static_cast<double>(counts.front().global)};
  }
  at::Tensor reduce(const Batch& batch, const std::vector<at::Tensor>& losses,
                    const at::Tensor& scales) const override {
    return (losses.front() * batch.terms.front().weights).sum() * scales[0];
  }
};

TEST_F(LossCheckTest, NanAtUnsupervisedPositionsMustNotArrive) {
  const LossCheck check = check_loss(TimesZero(), kMean, Formula::kGlobalMean);
  EXPECT_THAT(check.unexpected,
              Contains("12 and 36 tokens: the objective is nan and should be 2.5"));
}

}  // namespace
}  // namespace tally::verify
