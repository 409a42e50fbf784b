#include "recipe/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tally::recipe {
namespace {

/// The definition, without a table.
size_t distance_by_definition(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::string_view a_rest = a.substr(1);
  const std::string_view b_rest = b.substr(1);
  size_t best = distance_by_definition(a_rest, b_rest) + (a[0] == b[0] ? 0 : 1);
  best = std::min(best, distance_by_definition(a_rest, b) + 1);
  best = std::min(best, distance_by_definition(a, b_rest) + 1);
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) {
    best = std::min(best, distance_by_definition(a.substr(2), b.substr(2)) + 1);
  }
  return best;
}

TEST(Nearest, DistanceFollowsItsDefinitionOnRandomWords) {
  std::mt19937 random(7);
  const auto word = [&] {
    std::string result(random() % 7, ' ');
    for (char& c : result) c = static_cast<char>('a' + random() % 3);
    return result;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string a = word();
    const std::string b = word();
    ASSERT_EQ(edit_distance(a, b), distance_by_definition(a, b)) << a << " " << b;
  }
}

TEST(Nearest, KnownDistances) {
  EXPECT_EQ(edit_distance("sampler", "sampler"), 0U);
  EXPECT_EQ(edit_distance("smapler", "sampler"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Nearest, TakesTheNearestAndNoneTooFar) {
  EXPECT_EQ(nearest("share", {"ranks", "shards", "spare"}), "spare");
  EXPECT_EQ(nearest("learning_rte", {"learning_rate", "learning_rates"}), "learning_rate");
  EXPECT_EQ(nearest("rank", {"bank", "tank"}), "bank") << "the first by name among equals";
  EXPECT_EQ(nearest("abc", {"abd"}), "abd") << "one of three letters";
  EXPECT_EQ(nearest("abcdef", {"abxyzf"}), std::nullopt) << "three of six letters";
  EXPECT_EQ(nearest("lr", {"learning_rate"}), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

}  // namespace
}  // namespace tally::recipe
