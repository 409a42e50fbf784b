#include "run/prefixed_reader.h"

#include <gtest/gtest.h>
#include <tally/memory_state.h>
#include <torch/torch.h>

namespace tally::run {
namespace {

TEST(PrefixedReaderTest, TakesOffThePrefixUnderWhichAStateWasReplayed) {
  MemoryState state;
  state.tensor("t", torch::ones({1}));
  state.integer("i", 2);
  state.text("s", "three");
  MemoryState all;
  all.integer("i", 99);
  state.replay(all, "sampler.");
  const PrefixedReader reader(all, "sampler.");
  EXPECT_TRUE(reader.has("i"));
  EXPECT_FALSE(reader.has("sampler.i"));
  EXPECT_EQ(reader.integer("i"), 2);
  EXPECT_EQ(reader.text("s"), "three");
  EXPECT_TRUE(reader.tensor("t").equal(torch::ones({1})));
  EXPECT_EQ(all.integer("i"), 99);
}

}  // namespace
}  // namespace tally::run
