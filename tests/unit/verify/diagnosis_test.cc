#include "verify/diagnosis.h"
#include "sample_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tally::verify {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What is said of the reference's gradient times a factor, W = 2, accumulation = 5.
std::string diagnosis_of_factor(double factor) {
  return diagnose(sample_reference(), gradients_of("other", sample_total() * factor));
}

/// Of the ranks' shares of the reference (shards 0 and 2, 1 and 3), each with its own factor.
std::string diagnosis_of_shares(double rank_0, double rank_1) {
  const std::vector<at::Tensor> shards = sample_shards();
  const at::Tensor found = (shards[0] + shards[2]) * rank_0 + (shards[1] + shards[3]) * rank_1;
  return diagnose(sample_reference(), gradients_of("other", found));
}

TEST(DiagnosisTest, NamesTheNumberOfRanks) {
  EXPECT_THAT(diagnosis_of_factor(2.0),
              StartsWith("2 times the reference: W, the number of ranks"));
}

TEST(DiagnosisTest, NamesADivisionByTheNumberOfRanks) {
  EXPECT_THAT(diagnosis_of_factor(0.5),
              StartsWith("0.5 times the reference: 1/W, the number of ranks"));
}

TEST(DiagnosisTest, NamesADivisionByTheAccumulation) {
  EXPECT_THAT(diagnosis_of_factor(0.2), StartsWith("0.2 times the reference: 1/accumulation"));
}

TEST(DiagnosisTest, NamesAMissingDivisionByTheAccumulation) {
  EXPECT_THAT(diagnosis_of_factor(5.0), StartsWith("5 times the reference: accumulation"));
}

TEST(DiagnosisTest, NamesBothTogether) {
  EXPECT_THAT(diagnosis_of_factor(0.4), StartsWith("0.4 times the reference: W/accumulation"));
  EXPECT_THAT(diagnosis_of_factor(0.1), StartsWith("0.1 times the reference: 1/(W * accumulation"));
}

TEST(DiagnosisTest, AdmitsAnUnknownFactor) {
  EXPECT_EQ(diagnosis_of_factor(3.0), "3 times the reference: no factor that is known here");
  EXPECT_EQ(diagnosis_of_factor(-1.0), "-1 times the reference: no factor that is known here");
}

TEST(DiagnosisTest, NamesLocalInsteadOfGlobalCounts) {
  // N / (W n_r) with n = 12 and 36, N = 48
  EXPECT_THAT(diagnosis_of_shares(2.0, 2.0 / 3.0),
              AllOf(StartsWith("local instead of global count"), HasSubstr("n = 12, 36"),
                    HasSubstr("N = 48"), HasSubstr("2, 0.667 times")));
}

TEST(DiagnosisTest, LocalCountsMustBeTheRanks) {
  // Swapped: each rank with the other's count.
  EXPECT_EQ(diagnosis_of_shares(2.0 / 3.0, 2.0),
            "the ranks' shares of the reference weigh 0.6667, 2 times what they should, by rank");
}

TEST(DiagnosisTest, SaysWhenARankIsMissing) {
  EXPECT_EQ(diagnosis_of_shares(1.0, 0.0),
            "the ranks' shares of the reference weigh 1, 0 times what they should, by rank");
}

TEST(DiagnosisTest, AdmitsSomethingElse) {
  const at::Tensor found = sample_total() + at::tensor({0.0F, 0.0F, 3.0F, 0.0F, -3.0F});
  EXPECT_EQ(diagnose(sample_reference(), gradients_of("other", found)),
            "no multiple of the reference, nor of the ranks' shares of it");
}

TEST(DiagnosisTest, WithoutSharesOnlyAWholeFactorIsSeen) {
  GradientSet reference = sample_reference();
  reference.windows.front().by_shard.clear();
  const std::vector<at::Tensor> shards = sample_shards();
  const at::Tensor found = (shards[0] + shards[2]) * 2.0 + (shards[1] + shards[3]) * (2.0 / 3.0);
  EXPECT_EQ(diagnose(reference, gradients_of("other", found)),
            "no multiple of the reference, nor of the ranks' shares of it");
}

}  // namespace
}  // namespace tally::verify
