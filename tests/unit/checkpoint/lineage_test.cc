#include "checkpoint/lineage.h"

#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <random>

namespace tally::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Digest kOne = sha256("one");
const Digest kOther = sha256("other");

Step step(int64_t window, Lineage lineage, const std::string& folder = "steps") {
  return {std::filesystem::path(folder) / std::to_string(window), window, std::move(lineage)};
}

std::vector<int64_t> windows_of(const std::vector<Step>& steps) {
  std::vector<int64_t> windows;
  for (const Step& one : steps) windows.push_back(one.window);
  return windows;
}

TEST(Lineage, OfARunThatNeverStoppedLeadsFromItsNewestStepDown) {
  const Lineage lineage{{kOne, 0}};
  EXPECT_THAT(windows_of(line_of({step(10, lineage), step(30, lineage), step(20, lineage)})),
              ElementsAre(30, 20, 10));
  EXPECT_THAT(line_of({}), testing::IsEmpty());
}

TEST(Lineage, OfARunThatGoesOnAsItWasStaysTheSame) {
  const Step at = step(20, {{kOne, 0}});
  EXPECT_EQ(continued(at, kOne, {step(10, {{kOne, 0}}), at}), at.lineage);
}

TEST(Lineage, OfARunThatGoesOnUnderOtherConditionsHasTheWindowOfTheChange) {
  const Step at = step(20, {{kOne, 0}});
  EXPECT_EQ(continued(at, kOther, {at}), (Lineage{{kOne, 0}, {kOther, 20, 1}}));
}

TEST(Lineage, OfARunThatWentBackLeavesItsLaterStepsBehind) {
  const Lineage first{{kOne, 0}};
  std::vector<Step> steps{step(10, first), step(20, first), step(50, first)};
  const Lineage second = continued(steps[1], kOne, steps);
  EXPECT_EQ(second, (Lineage{{kOne, 0}, {kOne, 20, 1}}));
  steps.push_back(step(25, second));
  EXPECT_THAT(windows_of(line_of(steps)), ElementsAre(25, 20, 10));
  EXPECT_EQ(left_at(steps[2], steps[3]), 20);
  EXPECT_EQ(left_at(steps[1], steps[3]), std::nullopt);
}

TEST(Lineage, OfARunThatWentBackTwiceToOneStepIsNew) {
  const Lineage first{{kOne, 0}};
  std::vector<Step> steps{step(20, first), step(50, first)};
  steps.push_back(step(40, continued(steps[0], kOne, steps)));
  const Lineage third = continued(steps[0], kOne, steps);
  EXPECT_EQ(third, (Lineage{{kOne, 0}, {kOne, 20, 2}}));
  steps.push_back(step(30, third));
  EXPECT_THAT(windows_of(line_of(steps)), ElementsAre(30, 20));
}

TEST(Lineage, OfARunThatWentOnFromWhatWasLeftBehindIsNewerThanAll) {
  std::vector<Step> steps{step(20, {{kOne, 0}}), step(50, {{kOne, 0}})};
  steps.push_back(step(30, continued(steps[0], kOther, steps)));
  const Lineage back = continued(steps[1], kOne, steps);
  EXPECT_EQ(back, (Lineage{{kOne, 0}, {kOne, 50, 2}}));
  steps.push_back(step(60, back));
  EXPECT_THAT(windows_of(line_of(steps)), ElementsAre(60, 50, 20));
  EXPECT_EQ(left_at(steps[2], steps[3]), 50);
}

TEST(Lineage, OfTwoRunsHasNoHead) {
  EXPECT_EQ(error_of<DataError>([] {
              line_of({step(10, {{kOne, 0}}), step(20, {{kOther, 0}})});
            }),
            "steps/20 and steps/10 are of two runs, of which none went on from the other; name the "
            "step that is meant");
}

/// Whatever a run did before, its newest save is the head, and the line from there is the windows
/// that it really came through.
TEST(Lineage, FindsTheWayThatAnyRunTook) {
  std::mt19937_64 random(5);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (int trial = 0; trial < 500; ++trial) {
    SCOPED_TRACE(trial);
    std::vector<Step> steps;
    std::vector<std::vector<int64_t>> ways;  // of each step, the steps' windows before and with it
    Lineage lineage{{kOne, 0}};
    std::vector<int64_t> way;
    size_t newest = 0;
    for (size_t save = 0, saves = 1 + below(12); save < saves; ++save) {
      if (!steps.empty() && below(3) == 0) {
        const size_t from = below(steps.size());
        lineage = continued(steps[from], below(2) == 0 ? kOne : kOther, steps);
        way = ways[from];
      }
      const int64_t window = (way.empty() ? 0 : way.back()) + 1 + static_cast<int64_t>(below(9));
      way.push_back(window);
      const auto same = std::find_if(steps.begin(), steps.end(),
                                     [&](const Step& one) { return one.window == window; });
      newest = static_cast<size_t>(same - steps.begin());
      if (same != steps.end()) {  // a folder has one step of a window
        *same = step(window, lineage);
        ways[newest] = way;
      } else {
        steps.push_back(step(window, lineage));
        ways.push_back(way);
      }
    }
    const std::vector<Step> line = line_of(steps);
    ASSERT_EQ(line.front().window, steps[newest].window);
    // A step of the way may have been replaced since, by one that the run did not come through.
    for (const Step& one : line) EXPECT_THAT(ways[newest], testing::Contains(one.window));
  }
}

TEST(Lineage, ComesBackFromItsJson) {
  const Lineage lineage{{kOne, 0}, {kOther, 20, 1}, {kOne, 20, 3}};
  EXPECT_EQ(lineage_from_json(to_json(lineage), 20, "manifest.json"), lineage);
  for (const char* text : {"[]", "{}", "null", "7"})
    EXPECT_THAT(error_of<DataError>(
                    [&] { lineage_from_json(nlohmann::json::parse(text), 20, "manifest.json"); }),
                HasSubstr("'lineage' must lead from window 0 to 20"));
}

}  // namespace
}  // namespace tally::checkpoint
