#include "distributed/flat_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>
#include <torch/torch.h>

namespace tally::distributed {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor leaf(std::vector<float> values) { return torch::tensor(values).set_requires_grad(true); }

void expect_rejected(const std::vector<NamedTensor>& parameters, const std::string& why) {
  EXPECT_THAT([&] { FlatParameters flat(parameters); }, ThrowsMessage<PluginError>(HasSubstr(why)));
}

TEST(FlatParametersTest, LaysParametersOutInReverseOrderAndKeepsTheirValues) {
  at::Tensor a = leaf({1, 2, 3});
  at::Tensor b = torch::tensor({{4.0F, 5.0F}, {6.0F, 7.0F}}).t().set_requires_grad(true);
  at::Tensor c = torch::tensor(8.0F).set_requires_grad(true);
  const FlatParameters flat({{"a", a}, {"b", b}, {"c", c}});
  EXPECT_TRUE(flat.values().equal(torch::tensor({8.0F, 4.0F, 6.0F, 5.0F, 7.0F, 1.0F, 2.0F, 3.0F})));
  EXPECT_EQ(flat.offset(0), 5);
  EXPECT_EQ(flat.offset(1), 1);
  EXPECT_EQ(flat.offset(2), 0);
  EXPECT_TRUE(b.equal(torch::tensor({{4.0F, 6.0F}, {5.0F, 7.0F}})));
}

TEST(FlatParametersTest, AnUpdateOfTheFlatValuesIsAnUpdateOfTheParameters) {
  at::Tensor a = leaf({1, 2});
  const FlatParameters flat({{"a", a}});
  flat.values().mul_(10);
  EXPECT_TRUE(a.detach().equal(torch::tensor({10.0F, 20.0F})));
}

TEST(FlatParametersTest, BackwardAccumulatesIntoTheFlatGradient) {
  at::Tensor a = leaf({1, 2});
  at::Tensor b = leaf({3});
  FlatParameters flat({{"a", a}, {"b", b}});
  (a * a).sum().backward();
  (b * 5).sum().backward();
  EXPECT_TRUE(flat.gradients().equal(torch::tensor({5.0F, 2.0F, 4.0F})));
  (b * 5).sum().backward();
  EXPECT_TRUE(flat.gradients().equal(torch::tensor({10.0F, 2.0F, 4.0F})));
  EXPECT_EQ(flat.named_gradients()[1].name, "b");
  EXPECT_TRUE(flat.named_gradients()[1].tensor.is_alias_of(flat.gradients()));
  flat.clear_gradients();
  EXPECT_TRUE(flat.gradients().equal(torch::zeros({3})));
}

TEST(FlatParametersTest, RejectsNoParameterAtAll) {
  expect_rejected({}, "the task lists no parameter to train");
}

TEST(FlatParametersTest, RejectsATensorThatIsListedTwice) {
  const at::Tensor a = leaf({1});
  expect_rejected({{"a", a}, {"b", a}}, "parameter 'a' is listed twice");
}

TEST(FlatParametersTest, RejectsWhatIsNoLeaf) {
  expect_rejected({{"a", leaf({1})}, {"sum", leaf({1}) + 1}},
                  "parameter 'sum' is no leaf of the graph");
}

TEST(FlatParametersTest, RejectsWhatNeedsNoGradient) {
  expect_rejected({{"frozen", torch::zeros({2})}},
                  "parameter 'frozen' does not require a gradient");
}

TEST(FlatParametersTest, RejectsAnUndefinedTensor) {
  expect_rejected({{"a", leaf({1})}, {"none", at::Tensor()}}, "parameter 'none' is undefined");
  expect_rejected({{"none", at::Tensor()}, {"a", leaf({1})}}, "parameter 'none' is undefined");
}

TEST(FlatParametersTest, RejectsMixedTypes) {
  expect_rejected({{"a", leaf({1})}, {"b", torch::zeros({1}, at::kDouble).set_requires_grad(true)}},
                  "parameter 'b' is double on cpu, but the first is float on cpu");
}

TEST(FlatParametersTest, RejectsAGradientThatSomebodyReplaced) {
  at::Tensor a = leaf({1, 2});
  at::Tensor b = leaf({3});
  FlatParameters flat({{"a", a}, {"b", b}});
  flat.clear_gradients();
  b.mutable_grad() = torch::zeros({1});
  EXPECT_THAT([&] { flat.clear_gradients(); },
              ThrowsMessage<PluginError>(HasSubstr("the gradient of parameter 'b' was replaced")));
  b.mutable_grad() = at::Tensor();
  EXPECT_THAT([&] { flat.clear_gradients(); },
              ThrowsMessage<PluginError>(HasSubstr("the gradient of parameter 'b' was replaced")));
}

}  // namespace
}  // namespace tally::distributed
