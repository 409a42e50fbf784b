#include "run/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tally::run {
namespace {

/// The same start and the same gradients for both optimizers.
class Pair {
 public:
  explicit Pair(const OptimizerOptions& options) : options_(options) {
    for (const int64_t size : {3, 1, 7}) {
      const at::Tensor start = torch::randn({size}, generator_);
      ours_.push_back({fmt::format("p{}", size), start.clone().set_requires_grad(true)});
      theirs_.push_back(start.clone().set_requires_grad(true));
    }
    parameters_ = std::make_unique<distributed::FlatParameters>(ours_);
    optimizer_ = make_optimizer(options, *parameters_);
    if (options.name == "adamw") {
      oracle_ = std::make_unique<torch::optim::AdamW>(
          theirs_, torch::optim::AdamWOptions(options.learning_rate)
                       .betas({options.beta1, options.beta2})
                       .eps(options.epsilon)
                       .weight_decay(options.weight_decay));
    } else {
      oracle_ = std::make_unique<torch::optim::SGD>(theirs_,
                                                    torch::optim::SGDOptions(options.learning_rate)
                                                        .momentum(options.momentum)
                                                        .weight_decay(options.weight_decay));
    }
  }

  void step(float found_inf) {
    for (size_t i = 0; i < theirs_.size(); ++i) {
      const at::Tensor gradient = torch::randn(theirs_[i].sizes(), generator_);
      theirs_[i].mutable_grad() = gradient.clone();
      ours_[i].tensor.mutable_grad().copy_(found_inf != 0.0F ? gradient / 0.0 : gradient);
    }
    optimizer_->step(torch::tensor(found_inf));
    if (found_inf == 0.0F) oracle_->step();
  }

  double difference() const {
    double largest = 0.0;
    for (size_t i = 0; i < theirs_.size(); ++i) {
      largest = std::max(
          largest, (ours_[i].tensor.detach() - theirs_[i].detach()).abs().max().item<double>());
    }
    return largest;
  }
  /// Parameters and state, for a comparison bit by bit.
  std::vector<at::Tensor> everything() const {
    std::vector<at::Tensor> all{parameters_->values().clone()};
    for (const NamedTensor& state : optimizer_->state()) all.push_back(state.tensor.clone());
    return all;
  }
  std::vector<std::string> state_names() const {
    std::vector<std::string> names;
    for (const NamedTensor& state : optimizer_->state()) names.push_back(state.name);
    return names;
  }
  Optimizer& optimizer() { return *optimizer_; }

 private:
  OptimizerOptions options_;
  at::Generator generator_ = at::detail::createCPUGenerator(3);
  std::vector<NamedTensor> ours_;
  std::vector<at::Tensor> theirs_;
  std::unique_ptr<distributed::FlatParameters> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<torch::optim::Optimizer> oracle_;
};

OptimizerOptions sgd(double momentum, double decay) {
  return {.name = "sgd", .learning_rate = 0.1, .momentum = momentum, .weight_decay = decay};
}
OptimizerOptions adamw(double decay) {
  return {.name = "adamw", .learning_rate = 0.01, .weight_decay = decay};
}

class OptimizerTest : public ::testing::TestWithParam<OptimizerOptions> {};

TEST_P(OptimizerTest, FollowsPyTorchOverFiveSteps) {
  Pair pair(GetParam());
  for (int step = 0; step < 5; ++step) {
    const at::Tensor before = pair.everything()[0];
    pair.step(0.0F);
    EXPECT_LE(pair.difference(), 5e-7) << "step " << step;
    EXPECT_FALSE(pair.everything()[0].equal(before));
  }
}

TEST_P(OptimizerTest, ASkippedStepChangesNoBitAndCountsAsNone) {
  Pair pair(GetParam());
  pair.step(0.0F);
  pair.step(0.0F);
  const std::vector<at::Tensor> before = pair.everything();
  pair.step(1.0F);
  const std::vector<at::Tensor> after = pair.everything();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(after[i].equal(before[i])) << i;
  pair.step(0.0F);
  EXPECT_LE(pair.difference(), 5e-7) << "as if the skipped step had never been";
}

TEST_P(OptimizerTest, AFirstStepMayBeSkipped) {
  Pair pair(GetParam());
  const std::vector<at::Tensor> before = pair.everything();
  pair.step(1.0F);
  const std::vector<at::Tensor> after = pair.everything();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(after[i].equal(before[i])) << i;
  pair.step(0.0F);
  EXPECT_LE(pair.difference(), 5e-7);
}

INSTANTIATE_TEST_SUITE_P(Options, OptimizerTest,
                         ::testing::Values(sgd(0.0, 0.0), sgd(0.9, 0.0), sgd(0.5, 0.1), adamw(0.0),
                                           adamw(0.2)),
                         [](const auto& test) {
                           return fmt::format("{}_{}", test.param.name, test.index);
                         });

TEST(OptimizerStateTest, NamesWhatACheckpointKeeps) {
  EXPECT_THAT(Pair(sgd(0.0, 0.0)).state_names(), ::testing::IsEmpty());
  EXPECT_THAT(Pair(sgd(0.9, 0.0)).state_names(), ::testing::ElementsAre("momentum"));
  EXPECT_THAT(Pair(adamw(0.0)).state_names(),
              ::testing::ElementsAre("exp_avg", "exp_avg_sq", "step"));
}

TEST(OptimizerStateTest, CountsStepsThatWereMade) {
  Pair pair(adamw(0.0));
  for (const float skipped : {0.0F, 1.0F, 0.0F, 1.0F, 0.0F}) pair.step(skipped);
  EXPECT_EQ(pair.optimizer().state().at(2).tensor.item<float>(), 3.0F);
}

}  // namespace
}  // namespace tally::run
