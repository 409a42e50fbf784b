#include "model.h"

#include <gmock/gmock.h>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>

namespace tiny_lm {
namespace {

using testing::ElementsAre;

Model made(int64_t seed, double dropout = 0) {
  at::set_num_threads(1);
  Model model(dropout);
  model.initialise(seed);
  return model;
}

TEST(Model, HasThirtyTensorsUnderTheirNamesInAStateDict) {
  std::vector<std::string> names;
  int64_t values = 0;
  const Model model = made(1);
  for (const auto& [name, tensor] : model.parameters()) {
    names.push_back(name);
    values += tensor.numel();
    EXPECT_TRUE(tensor.requires_grad() && tensor.is_leaf()) << name;
    EXPECT_EQ(tensor.scalar_type(), at::kFloat) << name;
  }
  EXPECT_EQ(values, 282'628);
  EXPECT_THAT(names,
              ElementsAre("token_embedding.weight", "position_embedding.weight",
                          "blocks.0.attention_norm.weight", "blocks.0.attention_norm.bias",
                          "blocks.0.attention.qkv.weight", "blocks.0.attention.qkv.bias",
                          "blocks.0.attention.output.weight", "blocks.0.attention.output.bias",
                          "blocks.0.feed_forward_norm.weight", "blocks.0.feed_forward_norm.bias",
                          "blocks.0.feed_forward.0.weight", "blocks.0.feed_forward.0.bias",
                          "blocks.0.feed_forward.2.weight", "blocks.0.feed_forward.2.bias",
                          "blocks.1.attention_norm.weight", "blocks.1.attention_norm.bias",
                          "blocks.1.attention.qkv.weight", "blocks.1.attention.qkv.bias",
                          "blocks.1.attention.output.weight", "blocks.1.attention.output.bias",
                          "blocks.1.feed_forward_norm.weight", "blocks.1.feed_forward_norm.bias",
                          "blocks.1.feed_forward.0.weight", "blocks.1.feed_forward.0.bias",
                          "blocks.1.feed_forward.2.weight", "blocks.1.feed_forward.2.bias",
                          "final_norm.weight", "final_norm.bias", "head.weight", "head.bias"));
}

TEST(Model, InitialisesToTheSameBitsFromTheSameSeedAlone) {
  at::manual_seed(1);
  const Model first = made(7);
  const at::Tensor next_of_default = at::rand({8});
  at::manual_seed(1);
  EXPECT_TRUE(at::equal(at::rand({8}), next_of_default)) << "initialise drew from the default";
  Model second = made(8);
  second.initialise(7);
  const Model other = made(8);
  for (size_t i = 0; i < first.parameters().size(); ++i) {
    const at::Tensor& tensor = first.parameters()[i].tensor;
    EXPECT_TRUE(at::equal(tensor, second.parameters()[i].tensor)) << first.parameters()[i].name;
    EXPECT_EQ(at::equal(tensor, other.parameters()[i].tensor), tensor.dim() == 1)
        << first.parameters()[i].name;
  }
}

/// The bits of a seed are a promise: a checkpoint's run can be repeated.
TEST(Model, InitialisesToKnownValues) {
  const Model model = made(1);
  const at::Tensor tokens = model.parameters()[0].tensor.detach();
  const at::Tensor head = model.parameters()[28].tensor.detach();
  EXPECT_EQ(tokens.const_data_ptr<float>()[0], -0x1.76e90cp-1F);
  EXPECT_EQ(head.const_data_ptr<float>()[511], -0x1.c4ca8ep-5F);
  EXPECT_LE(tokens.abs().max().item<float>(), 1.0F);
  EXPECT_LE(head.abs().max().item<float>(), 1 / std::sqrt(128.0F));
  EXPECT_NEAR(model.parameters()[4].tensor.detach().mul(std::sqrt(128.0F)).std().item<double>(),
              1 / std::sqrt(3.0), 0.005);
}

/// The same module written with torch.nn in Python, from the same initial values.
TEST(Model, ComputesWhatPyTorchsModulesDo) {
  const Model model = made(1);
  const at::Tensor ids = at::tensor({0, 1, 2, 3, 3, 2, 1, 0, 1, 1, 3, 0, 2, 2, 0, 3}, at::kLong);
  const at::Tensor logits = model.logits(ids.view({2, 8}));
  const std::vector<double> first = {0.23812033, 0.01421210, -0.62114966, 0.55748771};
  const std::vector<double> last = {-0.56441009, 0.43965867, 0.20572612, 1.35122883};
  for (int64_t token = 0; token < 4; ++token) {
    const auto k = static_cast<size_t>(token);
    EXPECT_NEAR(logits[0][0][token].item<double>(), first[k], 1e-5);
    EXPECT_NEAR(logits[1][7][token].item<double>(), last[k], 1e-5);
  }
  const at::Tensor targets = at::roll(ids.view({2, 8}), -1, 1).flatten();
  at::cross_entropy_loss(logits.flatten(0, 1), targets, {}, at::Reduction::Sum).backward();
  const std::vector<std::pair<size_t, double>> norms = {
      {0, 1.93228590}, {1, 3.49103069}, {4, 9.56097889}, {24, 7.79106045}, {29, 1.83956230}};
  for (const auto& [index, norm] : norms) {
    const auto& [name, parameter] = model.parameters()[index];
    EXPECT_NEAR(parameter.grad().norm().item<double>(), norm, 1e-4) << name;
  }
}

TEST(Model, SeesNothingOfLaterTokens) {
  const Model model = made(3);
  at::manual_seed(5);
  const at::Tensor ids = at::randint(0, 4, {3, 128}, at::kLong);
  const at::Tensor before = model.logits(ids).detach();
  for (const int64_t t : {0, 1, 17, 64, 126, 127}) {
    at::Tensor changed = ids.clone();
    changed.select(1, t).add_(1).remainder_(4);
    const at::Tensor after = model.logits(changed).detach();
    if (t > 0) {
      EXPECT_LE(after.narrow(1, 0, t).sub(before.narrow(1, 0, t)).abs().max().item<double>(), 1e-5)
          << "before " << t;
    }
    EXPECT_GT(after.select(1, t).sub(before.select(1, t)).abs().min().item<double>(), 1e-6) << t;
    if (t < 127) {
      EXPECT_GT(after.select(1, t + 1).sub(before.select(1, t + 1)).abs().max().item<double>(),
                1e-6)
          << "position " << t + 1 << " does not see position " << t;
    }
  }
}

TEST(Model, DropsOnlyInTraining) {
  Model dropping = made(3, 0.5);
  Model plain = made(3, 0);
  plain.set_training(true);
  at::manual_seed(5);
  const at::Tensor ids = at::randint(0, 4, {2, 16}, at::kLong);
  const at::Tensor expected = plain.logits(ids);
  EXPECT_TRUE(at::equal(dropping.logits(ids), expected)) << "before training";
  dropping.set_training(true);
  at::manual_seed(9);
  const at::Tensor dropped = dropping.logits(ids);
  EXPECT_FALSE(at::equal(dropped, expected));
  EXPECT_FALSE(at::equal(dropping.logits(ids), dropped)) << "two draws are the same";
  at::manual_seed(9);
  EXPECT_TRUE(at::equal(dropping.logits(ids), dropped)) << "not from the default generator";
  dropping.set_training(false);
  EXPECT_TRUE(at::equal(dropping.logits(ids), expected)) << "after training";
}

TEST(Model, DrawsNothingWithoutDropout) {
  Model model = made(3, 0);
  model.set_training(true);
  at::manual_seed(5);
  model.logits(at::zeros({1, 4}, at::kLong));
  const at::Tensor after = at::rand({4});
  at::manual_seed(5);
  EXPECT_TRUE(at::equal(at::rand({4}), after));
}

TEST(Model, NoRowsGiveEveryParameterAZeroGradient) {
  const Model model = made(3);
  const at::Tensor logits = model.logits(at::zeros({0, 16}, at::kLong));
  EXPECT_EQ(logits.sizes(), at::IntArrayRef({0, 16, 4}));
  logits.sum().backward();
  for (const auto& [name, tensor] : model.parameters()) {
    ASSERT_TRUE(tensor.grad().defined()) << name;
    EXPECT_EQ(tensor.grad().ne(0).sum().item<int64_t>(), 0) << name;
  }
}

TEST(Model, KeepsItsTensorsWhenMoved) {
  Model model = made(3);
  const at::Tensor held = model.parameters()[0].tensor;
  const at::Tensor ids = at::zeros({1, 4}, at::kLong);
  const at::Tensor before = model.logits(ids).detach();
  model.to(at::kCPU);
  EXPECT_TRUE(held.is_same(model.parameters()[0].tensor));
  EXPECT_TRUE(held.requires_grad());
  // The host makes parameters views of one flat tensor: the model must follow.
  at::Tensor parameter = model.parameters()[29].tensor;
  parameter.set_data(parameter.detach().add(1));
  EXPECT_LE(model.logits(ids).detach().sub(before).sub(1).abs().max().item<double>(), 1e-5);
}

}  // namespace
}  // namespace tiny_lm
