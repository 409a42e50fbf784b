#include "support/case_file.h"
#include "support/scripted_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

#include <bit>

namespace tally::train {
namespace {

using ::testing::HasSubstr;

double relative_error(double actual, double expected) {
  return std::abs(actual - expected) / std::max(std::abs(expected), 1e-30);
}

/// rank_mean gives each rank's own mean; a rank without positions adds 0.
bool is_what_rank_mean_does(const Case& one) {
  const auto& defect = one.at("defect");
  return defect.at("rule") == "mean-of-rank-means" && defect.value("empty", "") == "zero";
}

/// The wrong value of a case, where rank_mean computes it: ranks without positions aside, its rule
/// is the mean of rank means.
bool rank_mean_computes(const Case& one) {
  if (one.at("defect").at("rule") != "mean-of-rank-means" || one.at("outcome") != "step")
    return false;
  return one.at("wrong") != "nan" || is_what_rank_mean_does(one);
}

std::vector<std::string> ids(const std::string& kind, bool (*wanted)(const Case&)) {
  std::vector<std::string> found;
  for (const Case& one : cases_of(kind))
    if (wanted(one)) found.push_back(one.at("id"));
  return found;
}

bool is_step(const Case& one) { return counts_tokens(one) && one.at("outcome") == "step"; }
bool is_refused(const Case& one) { return counts_tokens(one) && one.at("outcome") == "error"; }
bool is_mean_of_ranks(const Case& one) { return counts_tokens(one) && rank_mean_computes(one); }

std::string name_of(const ::testing::TestParamInfo<std::string>& test) {
  return test_name_of(test.param);
}

ScriptedOptions options_of(const Case& one) {
  ScriptedOptions options;
  options.world = one.at("world");
  return options;
}

class GradientCaseTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GradientCaseTest, EveryRankHoldsTheRightGradient) {
  const Case& one = case_of(GetParam());
  const double right = number_of(one.at("right"));
  for (const std::string policy : {"no_sync", "sum"}) {
    for (const auto& [dtype, tolerance] :
         {std::pair{at::kDouble, 1e-12}, std::pair{at::kFloat, 1e-6}}) {
      ScriptedOptions options = options_of(one);
      options.policy = policy;
      const auto logs = run_script_well(script_of(one, dtype), options);
      for (const RankLog& log : logs) {
        ASSERT_EQ(log.gradients.size(), 1U);
        EXPECT_LE(relative_error(log.gradients[0].at(0), right), tolerance)
            << policy << ": " << log.gradients[0].at(0) << " instead of " << right;
      }
      if (!one.contains("logged_right")) continue;
      EXPECT_LE(relative_error(logs[0].metrics.at(0).loss.value(), number_of(one["logged_right"])),
                tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GradientCaseTest, ::testing::ValuesIn(ids("gradient", is_step)),
                         name_of);

class LoggedLossCaseTest : public ::testing::TestWithParam<std::string> {};

TEST_P(LoggedLossCaseTest, TheLoggedLossIsTheObjective) {
  const Case& one = case_of(GetParam());
  for (const RankLog& log : run_script_well(script_of(one, at::kDouble), options_of(one))) {
    ASSERT_EQ(log.metrics.size(), 1U);
    EXPECT_LE(relative_error(log.metrics[0].loss.value(), number_of(one.at("right"))), 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LoggedLossCaseTest,
                         ::testing::ValuesIn(ids("logged-loss", is_step)), name_of);

/// The same host and the same test with the reducer that is known to be wrong: the test sees it.
class RankMeanCaseTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RankMeanCaseTest, GivesTheWrongValueOfTheCase) {
  const Case& one = case_of(GetParam());
  ScriptedOptions options = options_of(one);
  options.reducer = "rank_mean";
  const double wrong = number_of(one.at("wrong"));
  for (const RankLog& log : run_script_well(script_of(one, at::kDouble), options)) {
    const double value =
        one.at("kind") == "gradient" ? log.gradients.at(0).at(0) : log.metrics.at(0).loss.value();
    if (wrong == 0.0) {
      EXPECT_NEAR(value, 0.0, 1e-12);
    } else {
      EXPECT_LE(relative_error(value, wrong), 1e-12) << value << " instead of " << wrong;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, RankMeanCaseTest,
                         ::testing::ValuesIn(ids("gradient", is_mean_of_ranks)), name_of);
INSTANTIATE_TEST_SUITE_P(LoggedLosses, RankMeanCaseTest,
                         ::testing::ValuesIn(ids("logged-loss", is_mean_of_ranks)), name_of);

class RefusedCaseTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RefusedCaseTest, EveryRankRefusesTheWindowAndKeepsItsBytes) {
  const Case& one = case_of(GetParam());
  Script script = script_of(one, at::kDouble);
  script.theta = 0.1;
  ScriptedOptions options = options_of(one);
  options.update = true;
  for (const RankLog& log : run_script(script, options)) {
    EXPECT_THAT(distributed::text_of_a<DataError>(log.failure),
                HasSubstr("window 0 has no supervised position on any rank"));
    EXPECT_TRUE(log.gradients.empty()) << "no pass was run";
    EXPECT_EQ(std::bit_cast<uint64_t>(log.theta.at(0)), std::bit_cast<uint64_t>(0.1));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RefusedCaseTest, ::testing::ValuesIn(ids("gradient", is_refused)),
                         name_of);

}  // namespace
}  // namespace tally::train
