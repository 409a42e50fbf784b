#include "cpython_random.h"

#include "python.h"

#include <gmock/gmock.h>

#include <numeric>

namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr uint64_t kSeeds[] = {0,
                               1,
                               42,
                               (1ULL << 32) - 1,
                               1ULL << 32,
                               (1ULL << 32) + 5,
                               0x123456789abcdefULL,
                               1ULL << 63,
                               (1ULL << 63) + 9,
                               UINT64_MAX};

std::vector<int64_t> as_numbers(const CPythonRandom::State& state) {
  return {state.begin(), state.end()};
}

TEST(CPythonRandom, SeedsAsPythonDoes) {
  for (const uint64_t seed : kSeeds) {
    const auto python = ask_python("random " + std::to_string(seed), "state\n");
    EXPECT_EQ(as_numbers(CPythonRandom(seed).state()), python.at(0)) << "seed " << seed;
  }
}

TEST(CPythonRandom, GivesPythonsBitsOfEveryWidth) {
  std::string questions;
  std::vector<int> widths;
  for (int i = 0; i < 2000; ++i) {
    widths.push_back(i % 64);
    questions += "bits " + std::to_string(widths.back()) + "\n";
  }
  for (const uint64_t seed : {uint64_t{7}, uint64_t{1} << 40}) {
    const auto python = ask_python("random " + std::to_string(seed), questions);
    CPythonRandom random(seed);
    for (size_t i = 0; i < widths.size(); ++i) {
      ASSERT_EQ(static_cast<int64_t>(random.getrandbits(widths[i])), python.at(i).at(0))
          << "draw " << i << " of " << widths[i] << " bits, seed " << seed;
    }
  }
}

/// Sizes on both sides of the limit between CPython's two algorithms (21, 37, 85, 277, 1045, ...),
/// one after another from one generator.
TEST(CPythonRandom, SamplesAsPythonDoesWithBothAlgorithms) {
  const std::vector<std::pair<int64_t, uint64_t>> sizes = {
      {1, 0},      {1, 1},    {21, 5},    {22, 5},    {36, 5},    {37, 6},     {85, 6},
      {86, 6},     {85, 21},  {86, 21},   {277, 22},  {278, 22},  {277, 85},   {278, 85},
      {444, 16},   {580, 32}, {512, 512}, {1045, 86}, {1046, 86}, {5000, 341}, {4117, 342},
      {4118, 342}, {16, 16},  {0, 0},     {64, 33},   {65, 64}};
  std::string questions;
  for (const auto& [size, count] : sizes) {
    questions += "sample " + std::to_string(size) + " " + std::to_string(count) + "\n";
  }
  questions += "state\n";
  for (const uint64_t seed : kSeeds) {
    const auto python = ask_python("random " + std::to_string(seed), questions);
    CPythonRandom random(seed);
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::vector<int64_t> population(static_cast<size_t>(sizes[i].first));
      std::iota(population.begin(), population.end(), 0);
      ASSERT_EQ(random.sample(population, sizes[i].second), python.at(i))
          << sizes[i].second << " of " << sizes[i].first << ", seed " << seed;
    }
    EXPECT_EQ(as_numbers(random.state()), python.back()) << "seed " << seed;
  }
}

TEST(CPythonRandom, RefusesASampleLargerThanThePopulation) {
  CPythonRandom random(1);
  EXPECT_THAT(([&] {
                random.sample({1, 2}, 3);
              }),
              ThrowsMessage<std::invalid_argument>("a sample of 3 from a population of 2"));
}

TEST(CPythonRandom, ContinuesFromAState) {
  CPythonRandom random(5);
  random.getrandbits(17);
  CPythonRandom other(6);
  other.set_state(random.state());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(other.getrandbits(32), random.getrandbits(32));
}

TEST(CPythonRandom, RefusesAStateThatCannotBe) {
  CPythonRandom random(1);
  CPythonRandom::State state = random.state();
  state.back() = 625;
  EXPECT_THAT([&] { random.set_state(state); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("index 625")));
  state = {};
  state[0] = 0x7fffffff;
  EXPECT_THAT([&] { random.set_state(state); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("all zero")));
}

}  // namespace
