#include "run/randomness.h"

#include "support/scripted_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace tally::run {
namespace {

using train::run_script_well;
using train::Script;
using train::ScriptedOptions;

using ::testing::ElementsAre;

TEST(RandomnessTest, SeedsAreFunctionsOfTheirKeysAndNothingElse) {
  EXPECT_EQ(stream_seed(7, 1), stream_seed(7, 1));
  EXPECT_EQ(keyed_seed(7, 1, 2, 3), keyed_seed(7, 1, 2, 3));
  std::set<uint64_t> seeds;
  size_t made = 0;
  for (int64_t seed = 0; seed < 3; ++seed) {
    for (int64_t a = 0; a < 4; ++a) {
      seeds.insert(stream_seed(seed, a));
      ++made;
      for (int64_t b = 0; b < 4; ++b) {
        for (int64_t c = 0; c < 4; ++c, ++made) seeds.insert(keyed_seed(seed, a, b, c));
      }
    }
  }
  EXPECT_EQ(seeds.size(), made)
      << "no two keys share a seed, in whatever order their numbers stand";
}

TEST(RandomnessTest, AKeyedSeedIsTheValueThatPythonComputes) {
  // python3: int.from_bytes(hashlib.sha256(b"keyed" + struct.pack("<4q", 1, 2, 3, 4)).digest()[:8],
  // "little"). A run that is resumed by a later tally must draw the same numbers.
  EXPECT_EQ(keyed_seed(1, 2, 3, 4), uint64_t{15633889259780559673U});
}

TEST(RandomnessTest, SeedingRepeatsTheDraws) {
  seed_generators(keyed_seed(1, 2, 3, 4), c10::kCPU);
  const at::Tensor first = torch::rand({8});
  EXPECT_FALSE(torch::rand({8}).equal(first));
  seed_generators(keyed_seed(1, 2, 3, 4), c10::kCPU);
  EXPECT_TRUE(torch::rand({8}).equal(first));
}

/// One number drawn in each forward of a run on one rank.
std::vector<float> draws_of(const std::vector<Shard>& shards, const std::string& rng) {
  Script script;
  script.examples = {{{.gradient = {1.0}}}};
  script.plans = {{0, shards}, {1, shards}};
  std::vector<float> draws;
  script.on_forward = [&](const Batch&) { draws.push_back(torch::rand({}).item<float>()); };
  ScriptedOptions options;
  options.shards = static_cast<int64_t>(shards.size());
  options.windows = 2;
  options.sets = {"rng=" + rng, "seed=5"};
  run_script_well(script, options);
  return draws;
}

float draw_after(uint64_t seed) {
  seed_generators(seed, c10::kCPU);
  return torch::rand({}).item<float>();
}

TEST(RandomnessTest, KeyedDrawsHangOnWindowShardAndMicrobatchAlone) {
  const float a = draw_after(keyed_seed(5, 0, 0, 0));
  const float b = draw_after(keyed_seed(5, 0, 0, 1));
  const float c = draw_after(keyed_seed(5, 0, 1, 0));
  const float d = draw_after(keyed_seed(5, 1, 1, 0));
  EXPECT_THAT(draws_of({{{0}, {0}}, {{0}}}, "keyed"),
              ElementsAre(a, b, c, draw_after(keyed_seed(5, 1, 0, 0)),
                          draw_after(keyed_seed(5, 1, 0, 1)), d));
  EXPECT_THAT(draws_of({{}, {{0}}}, "keyed"), ElementsAre(c, d)) << "whatever else is run";
}

TEST(RandomnessTest, StreamedDrawsRunOn) {
  seed_generators(stream_seed(5, 0), c10::kCPU);
  std::vector<float> expected;
  for (int i = 0; i < 4; ++i) expected.push_back(torch::rand({}).item<float>());
  EXPECT_EQ(draws_of({{{0}, {0}}}, "stream"), expected);
}

}  // namespace
}  // namespace tally::run
