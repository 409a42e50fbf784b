#include "verify/parity.h"

#include "sample_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

#include <cmath>
#include <functional>
#include <limits>

namespace tally::verify {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string config_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(ParityTest, EqualGradientsPass) {
  const Parity parity =
      compare_gradients(sample_reference(), gradients_of("other", sample_total()));
  EXPECT_TRUE(parity.pass);
  EXPECT_EQ(parity.recipe, "other");
  EXPECT_EQ(parity.values, 5);
  EXPECT_EQ(parity.max_abs_error, 0.0);
  EXPECT_EQ(parity.max_rel_error, 0.0);
  EXPECT_EQ(parity.max_reference, 7.0);
  EXPECT_EQ(parity.out_of_tolerance, 0);
  EXPECT_EQ(parity.diagnosis, "");
}

TEST(ParityTest, CountsValuesOutOfTolerance) {
  // The total is {7, 2, 3, -1, 7}.
  const at::Tensor off = at::tensor({0.25F, 0.0F, 0.0F, 0.5F, 0.0F});
  const Parity parity =
      compare_gradients(sample_reference(), gradients_of("other", sample_total() + off));
  EXPECT_FALSE(parity.pass);
  EXPECT_EQ(parity.out_of_tolerance, 2);
  EXPECT_EQ(parity.max_abs_error, 0.5);
  EXPECT_EQ(parity.max_rel_error, 0.5);
}

TEST(ParityTest, ToleranceIsAbsolutePlusRelative) {
  const Tolerance tolerance{.absolute = 0.5, .relative = 0.25, .relative_floor = 1e-6};
  const auto pass = [&](float off) {
    // At the value 2: 0.5 + 0.25 * 2 = 1 is allowed.
    const at::Tensor shift = at::tensor({0.0F, off, 0.0F, 0.0F, 0.0F});
    return compare_gradients(sample_reference(), gradients_of("other", sample_total() + shift),
                             tolerance)
        .pass;
  };
  EXPECT_TRUE(pass(1.0F));
  EXPECT_TRUE(pass(-1.0F));
  EXPECT_FALSE(pass(1.015625F));
}

TEST(ParityTest, RelativeErrorHasAFloor) {
  const at::Tensor zero = at::zeros({5});
  const at::Tensor tiny = at::full({5}, 0.5, at::kDouble);
  GradientSet reference = gradients_of("reference", zero);
  const Parity parity = compare_gradients(reference, gradients_of("other", tiny),
                                          {.absolute = 1.0, .relative = 0, .relative_floor = 0.25});
  EXPECT_TRUE(parity.pass);
  EXPECT_EQ(parity.max_rel_error, 2.0);
}

TEST(ParityTest, NanAndInfinityFail) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const at::Tensor found = sample_total();
    found[3] = bad;
    const Parity parity = compare_gradients(sample_reference(), gradients_of("other", found));
    EXPECT_FALSE(parity.pass) << bad;
    EXPECT_EQ(parity.out_of_tolerance, 1) << bad;
    EXPECT_FALSE(std::isfinite(parity.max_abs_error)) << bad;
    EXPECT_EQ(parity.diagnosis, "the gradient has NaN or infinite values") << bad;
  }
}

TEST(ParityTest, NanOnBothSidesFails) {
  const at::Tensor nan = sample_total();
  nan[0] = std::numeric_limits<float>::quiet_NaN();
  const Parity parity =
      compare_gradients(gradients_of("reference", nan), gradients_of("other", nan));
  EXPECT_FALSE(parity.pass);
  EXPECT_EQ(parity.out_of_tolerance, 1);
}

TEST(ParityTest, LaterWindowsCountToo) {
  GradientSet reference = sample_reference();
  GradientSet other = gradients_of("other", sample_total());
  reference.windows.push_back(reference.windows.front());
  other.windows.push_back(gradients_of("other", sample_total() * 2).windows.front());
  const Parity parity = compare_gradients(reference, other);
  EXPECT_EQ(parity.values, 10);
  EXPECT_EQ(parity.out_of_tolerance, 5);
  EXPECT_FALSE(parity.pass);
}

TEST(ParityTest, ParametersArePairedByName) {
  GradientSet other = gradients_of("other", sample_total());
  std::swap(other.windows.front().total[0], other.windows.front().total[1]);
  EXPECT_TRUE(compare_gradients(sample_reference(), other).pass);
}

TEST(ParityTest, OtherWindowsAreNoComparison) {
  GradientSet other = gradients_of("other", sample_total());
  other.chain = sha256("other windows");
  EXPECT_THAT(config_error_of([&] { compare_gradients(sample_reference(), other); }),
              AllOf(HasSubstr("'reference' and 'other'"), HasSubstr("the chain of drawn windows"),
                    HasSubstr(other.chain.hex()), HasSubstr(Digest().hex())));
}

TEST(ParityTest, OtherDataAreNoComparison) {
  GradientSet other = gradients_of("other", sample_total());
  other.data = sha256("other data");
  EXPECT_THAT(config_error_of([&] { compare_gradients(sample_reference(), other); }),
              AllOf(HasSubstr("the data is"), HasSubstr(other.data.hex())));
}

TEST(ParityTest, FewerWindowsAreNoComparison) {
  GradientSet reference = sample_reference();
  reference.windows.push_back(reference.windows.front());
  EXPECT_THAT(
      config_error_of([&] { compare_gradients(reference, gradients_of("other", sample_total())); }),
      HasSubstr("the number of windows is 2 and 1"));
}

TEST(ParityTest, AnotherModelIsNoComparison) {
  GradientSet renamed = gradients_of("other", sample_total());
  renamed.windows.front().total[1].name = "offset";
  EXPECT_THAT(config_error_of([&] { compare_gradients(sample_reference(), renamed); }),
              HasSubstr("parameter 'bias'"));
  GradientSet reshaped = gradients_of("other", sample_total());
  reshaped.windows.front().total[0].tensor = at::zeros({4});
  EXPECT_THAT(config_error_of([&] { compare_gradients(sample_reference(), reshaped); }),
              HasSubstr("parameter 'weight'"));
  GradientSet shorter = gradients_of("other", sample_total());
  shorter.windows.front().total.pop_back();
  EXPECT_THAT(config_error_of([&] { compare_gradients(sample_reference(), shorter); }),
              HasSubstr("different numbers of parameters"));
}

}  // namespace
}  // namespace tally::verify
