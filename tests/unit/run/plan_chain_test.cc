#include "run/plan_chain.h"

#include <gtest/gtest.h>

#include <vector>

namespace tally::run {
namespace {

/// The rule written out once more, byte by byte.
Digest recomputed(const Digest& previous, const WindowPlan& plan) {
  std::string bytes(previous.bytes().begin(), previous.bytes().end());
  const auto add = [&](int64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      bytes.push_back(static_cast<char>(static_cast<uint64_t>(value) >> shift));
  };
  add(plan.window);
  add(static_cast<int64_t>(plan.shards.size()));
  for (const Shard& shard : plan.shards) {
    add(static_cast<int64_t>(shard.size()));
    for (const Microbatch& microbatch : shard) {
      add(static_cast<int64_t>(microbatch.size()));
      for (const ExampleId id : microbatch) add(id);
    }
  }
  return sha256(bytes);
}

TEST(PlanChainTest, IsTheHashOfTheDocumentedBytes) {
  const std::vector<WindowPlan> plans{
      {0, {{{1, 2}, {3}}, {}, {{}}}}, {1, {{{int64_t{1} << 40, 0}}}}, {2, {}}};
  Digest ours;
  Digest expected;
  for (const WindowPlan& plan : plans) {
    ours = chain(ours, plan);
    expected = recomputed(expected, plan);
    EXPECT_EQ(ours, expected) << "window " << plan.window;
  }
}

TEST(PlanChainTest, IsTheValueThatPythonComputes) {
  // python3: hashlib.sha256(bytes(32) + struct.pack("<8q", 0, 1, 2, 2, 5, 6, 1, 7)).hexdigest()
  EXPECT_EQ(chain(Digest(), {0, {{{5, 6}, {7}}}}).hex(),
            "be9dabf32bbc2143cb4a00064ef6debbd457c2baff241043683056d74f4edaf6");
}

TEST(PlanChainTest, TellsPlansApartThatHoldTheSameIds) {
  const std::vector<WindowPlan> plans{{0, {{{1, 2}}}},    {0, {{{1}, {2}}}}, {0, {{{1}}, {{2}}}},
                                      {0, {{{2, 1}}}},    {1, {{{1, 2}}}},   {0, {{{1, 2}, {}}}},
                                      {0, {{{1, 2}}, {}}}};
  for (size_t a = 0; a < plans.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      EXPECT_NE(chain(Digest(), plans[a]), chain(Digest(), plans[b])) << a << " and " << b;
  EXPECT_NE(chain(sha256("other"), plans[0]), chain(Digest(), plans[0]));
}

TEST(WindowHistoryTest, KeepsTheLastWindowsAndTheChainOfAll) {
  WindowHistory history;
  Digest expected;
  for (int64_t window = 0; window < 100; ++window) {
    const WindowPlan plan{window, {{{window}}}};
    history.append(plan);
    expected = recomputed(expected, plan);
  }
  EXPECT_EQ(history.windows, 100);
  EXPECT_EQ(history.chain, expected);
  ASSERT_EQ(history.last.size(), 64U);
  EXPECT_EQ(history.last.front().window, 36);
  EXPECT_EQ(history.last.back().window, 99);
}

}  // namespace
}  // namespace tally::run
