#include "run/state_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>
#include <torch/torch.h>

namespace tally::run {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(StateRecordingTest, GivesBackWhatWasWritten) {
  StateRecording state;
  state.tensor("t", torch::tensor({1, 2, 3}, at::kLong));
  state.integer("i", -5);
  state.text("s", std::string("a\0b", 3));
  EXPECT_TRUE(state.has("t"));
  EXPECT_FALSE(state.has("u"));
  EXPECT_TRUE(state.tensor("t").equal(torch::tensor({1, 2, 3}, at::kLong)));
  EXPECT_EQ(state.integer("i"), -5);
  EXPECT_EQ(state.text("s"), std::string("a\0b", 3));
}

TEST(StateRecordingTest, KeepsTheValueOfTheMoment) {
  StateRecording state;
  at::Tensor live = torch::ones({2});
  state.tensor("t", live);
  live.fill_(9);
  EXPECT_TRUE(state.tensor("t").equal(torch::ones({2})));
  state.tensor("t").fill_(7);
  EXPECT_TRUE(state.tensor("t").equal(torch::ones({2}))) << "a reader gets its own copy";
}

TEST(StateRecordingTest, RefusesASecondValueOfOneName) {
  StateRecording state;
  state.integer("i", 1);
  EXPECT_THAT([&] { state.text("i", "x"); },
              ThrowsMessage<PluginError>(HasSubstr("a state writes its value 'i' twice")));
}

TEST(StateRecordingTest, RefusesAnAbsentValueAndAnotherType) {
  StateRecording state;
  state.integer("i", 1);
  const auto refused = HasSubstr("no value 'i' of the type asked for");
  EXPECT_THAT([&] { state.text("i"); }, ThrowsMessage<DataError>(refused));
  EXPECT_THAT([&] { state.tensor("i"); }, ThrowsMessage<DataError>(refused));
  EXPECT_THAT([&] { state.integer("j"); }, ThrowsMessage<DataError>(HasSubstr("no value 'j'")));
}

TEST(StateRecordingTest, ReplaysUnderAPrefixThatAPrefixedReaderTakesOff) {
  StateRecording state;
  state.tensor("t", torch::ones({1}));
  state.integer("i", 2);
  state.text("s", "three");
  StateRecording all;
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
