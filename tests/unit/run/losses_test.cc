#include "run/losses.h"

#include "support/scalar_task.h"
#include "support/sequence_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

#include <cmath>
#include <limits>

namespace tally::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// The default count and reduce.
class TokenSum : public LossReducer {
 public:
  std::vector<double> scale(const std::vector<TermInfo>& terms, const std::vector<TermCounts>&,
                            const Aggregation&) const override {
    return std::vector<double>(terms.size(), 1.0);
  }
};

class TakesAnything final : public TokenSum {
 public:
  bool takes_non_additive() const override { return true; }
};

plugin::Hooked<LossReducer> hooked(std::unique_ptr<LossReducer> reducer) {
  return {std::move(reducer), {"loss_reducer", "tested", "test", "1"}};
}

Batch batch_of(std::vector<at::Tensor> weights) {
  Batch batch;
  batch.examples.resize(static_cast<size_t>(weights.front().size(0)));
  for (at::Tensor& weight : weights) batch.terms.push_back({"t", std::move(weight), std::nullopt});
  return batch;
}

std::vector<double> sums_of(const plugin::Hooked<LossReducer>& reducer, const Batch& batch,
                            const std::vector<at::Tensor>& losses) {
  const at::Tensor sums = term_sums(reducer, batch, losses);
  EXPECT_EQ(sums.scalar_type(), at::kDouble);
  EXPECT_FALSE(sums.requires_grad());
  const auto* data = sums.const_data_ptr<double>();
  return {data, data + sums.numel()};
}

TEST(TermSumsTest, AreTheWeightedSumsOfATokenMean) {
  torch::manual_seed(1);
  for (int round = 0; round < 50; ++round) {
    const at::Tensor weights = at::rand({4, 6}).mul(3).floor();
    const at::Tensor losses = at::randn({4, 6}).where(weights.ne(0), std::nan(""));
    const double expected = losses.to(at::kDouble).mul(weights).nan_to_num(0).sum().item<double>();
    const std::vector<double> sums = sums_of(hooked(std::make_unique<TokenSum>()),
                                             batch_of({weights}), {losses.requires_grad_(true)});
    ASSERT_EQ(sums.size(), 1U);
    EXPECT_NEAR(sums[0], expected, 1e-12 * std::abs(expected) + 1e-12);
  }
}

TEST(TermSumsTest, AreTheReducersOwnSums) {
  // Rows of 1, 3 and no supervised position: means 5 and (1 + 2 + 6) / 3.
  const at::Tensor weights = torch::tensor({{1.0, 0.0, 0.0}, {1.0, 1.0, 1.0}, {0.0, 0.0, 0.0}});
  const at::Tensor losses = torch::tensor({{5.0, 9.0, 9.0}, {1.0, 2.0, 6.0}, {9.0, 9.0, 9.0}});
  const auto reducer = hooked(std::make_unique<SequenceMean>());
  EXPECT_THAT(sums_of(reducer, batch_of({weights}), {losses}), ::testing::ElementsAre(8.0));
  EXPECT_THAT(count(reducer, batch_of({weights}), 1), ::testing::ElementsAre(2));
}

TEST(TermSumsTest, ATermDoesNotSeeTheOthers) {
  const at::Tensor weights = torch::ones({1, 2});
  const at::Tensor broken = torch::full({1, 2}, std::numeric_limits<double>::infinity());
  const std::vector<double> sums =
      sums_of(hooked(std::make_unique<TokenSum>()), batch_of({weights, weights, weights}),
              {torch::tensor({{1.0, 2.0}}), broken, torch::tensor({{4.0, 8.0}})});
  EXPECT_EQ(sums[0], 3.0);
  EXPECT_TRUE(std::isinf(sums[1]));
  EXPECT_EQ(sums[2], 12.0);
}

plugin::Hooked<Task> task_with(std::vector<TermInfo> terms) {
  train::Script script;
  script.terms = std::move(terms);
  return {std::make_unique<train::ScalarTask>(script), {"task", "scripted", "test", "1"}};
}

TEST(TermsOfTest, HaveTheReducersUnits) {
  const auto task = task_with({{.name = "main", .unit = "token"}});
  EXPECT_EQ(terms_of(task, hooked(std::make_unique<TokenSum>()))[0].unit, "token");
  EXPECT_EQ(terms_of(task, hooked(std::make_unique<SequenceMean>()))[0].unit, "sequence");
}

TEST(TermsOfTest, ANonAdditiveTermNeedsAReducerThatTakesIt) {
  const auto task = task_with({{.name = "contrast", .unit = "sequence", .additive = false}});
  EXPECT_THAT(
      [&] { terms_of(task, hooked(std::make_unique<TokenSum>())); },
      ThrowsMessage<PluginError>(AllOf(HasSubstr("loss_reducer \"tested\""),
                                       HasSubstr("'contrast'"), HasSubstr("not additive"))));
  EXPECT_EQ(terms_of(task, hooked(std::make_unique<TakesAnything>())).size(), 1U);
}

TEST(TermsOfTest, ATaskDeclaresOne) {
  EXPECT_THAT([&] { terms_of(task_with({}), hooked(std::make_unique<TokenSum>())); },
              ThrowsMessage<PluginError>(HasSubstr("declares no term of the loss")));
}

}  // namespace
}  // namespace tally::run
