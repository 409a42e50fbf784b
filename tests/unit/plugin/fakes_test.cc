// The fakes keep the contracts of what they stand for, so that a plugin which passes with them
// passes with the host.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/testing/fakes.h>

namespace tally::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Property;
using ::testing::StrEq;
using ::testing::Throws;

TEST(FakeConfigTest, GivesValuesAndFallbacksOfEachType) {
  const FakeConfig config{{"layers", 2},
                          {"rate", 0.5},
                          {"causal", true},
                          {"file", "a.jsonl"},
                          {"sizes", std::vector<int64_t>{3, 4}}};
  EXPECT_EQ(config.integer("layers"), 2);
  EXPECT_EQ(config.number("rate"), 0.5);
  EXPECT_EQ(config.number("layers"), 2.0);
  EXPECT_TRUE(config.boolean("causal"));
  EXPECT_EQ(config.text("file"), "a.jsonl");
  EXPECT_THAT(config.integers("sizes"), ElementsAre(3, 4));
  EXPECT_EQ(config.integer("absent", 9), 9);
  EXPECT_EQ(config.text("absent", "x"), "x");
  EXPECT_FALSE(config.has("absent"));
}

TEST(FakeConfigTest, RefusesAnotherTypeAndAMissingKey) {
  const FakeConfig config{{"layers", 2.0}, {"flag", 1}};
  EXPECT_THAT(
      [&] { config.integer("layers"); },
      Throws<ConfigError>(Property(&ConfigError::what, StrEq("test: layers must be an integer"))));
  EXPECT_THROW(config.boolean("flag"), ConfigError);
  EXPECT_THAT([&] { config.text("absent"); },
              Throws<ConfigError>(Property(&ConfigError::what,
                                           StrEq("test: absent is missing; give it a string"))));
  EXPECT_THROW(config.integer_in("flag", std::nullopt, 2, 3), ConfigError);
}

TEST(FakeConfigTest, NamesTheKeysThatNobodyRead) {
  const FakeConfig config{{"a", 1}, {"b", 2}, {"c", 3}};
  config.integer("b");
  EXPECT_THAT(config.unread(), ElementsAre("a", "c"));
}

TEST(FakeContextTest, StreamSeedDependsOnSeedPurposeAndIndex) {
  const FakeContext context({}, 5);
  const uint64_t value = context.stream_seed("order", 3);
  EXPECT_EQ(FakeContext({}, 5).stream_seed("order", 3), value);
  EXPECT_NE(FakeContext({}, 6).stream_seed("order", 3), value);
  EXPECT_NE(context.stream_seed("orders", 3), value);
  EXPECT_NE(context.stream_seed("order", 4), value);
}

TEST(FakeContextTest, HandsOutAnInnerHookOnce) {
  class Policy final : public SyncPolicy {};
  FakeContext context;
  auto policy = std::make_unique<Policy>();
  const SyncPolicy* const address = policy.get();
  context.put("inner", std::move(policy));
  EXPECT_EQ(context.create_sync_policy("inner").get(), address);
  EXPECT_THROW(context.create_sync_policy("inner"), ConfigError);
  EXPECT_THROW(context.create_sampler("inner"), ConfigError);
}

TEST(FakeContextTest, KeepsWhatIsLogged) {
  FakeContext context;
  context.log(LogLevel::kInfo, "one");
  context.log(LogLevel::kWarning, "two");
  EXPECT_THAT(context.lines(), ElementsAre("one", "two"));
}

TEST(FakeSyncTest, CollectivesDoWhatTheyDoAmongOneRank) {
  FakeSync sync;
  const at::Tensor input = at::arange(6);
  const at::Tensor output = at::zeros({6}, at::kLong);
  sync.all_gather(output, input)->wait();
  EXPECT_TRUE(output.equal(input));
  output.zero_();
  sync.reduce_scatter(output, input)->wait();
  EXPECT_TRUE(output.equal(input));
  output.zero_();
  sync.all_to_all(output, input)->wait();
  EXPECT_TRUE(output.equal(input));
  sync.all_reduce(output, ReduceOp::kSum)->wait();
  sync.broadcast(output, 0)->wait();
  EXPECT_TRUE(output.equal(input));
  EXPECT_THAT(sync.calls(),
              ElementsAre("all_gather", "reduce_scatter", "all_to_all", "all_reduce", "broadcast"));
  EXPECT_EQ(sync.unfinished(), 0);
  EXPECT_THROW(sync.broadcast(output, 1), PluginError);
  EXPECT_THROW(sync.all_gather(at::zeros({12}, at::kLong), input), PluginError);
  EXPECT_THROW(sync.gradients(), PluginError);
}

TEST(FakeSyncTest, CountsWorkThatNobodyWaitedFor) {
  FakeSync sync(at::zeros({4}));
  const auto work = sync.all_reduce(sync.gradients(), ReduceOp::kSum);
  sync.all_reduce(sync.gradients(), ReduceOp::kSum);
  EXPECT_EQ(sync.unfinished(), 2);
  work->wait();
  work->wait();
  EXPECT_EQ(sync.unfinished(), 1);
  sync.forget_calls();
  EXPECT_THAT(sync.calls(), IsEmpty());
}

TEST(MemoryStateTest, ReadsWhatWasWrittenAndCopiesTensors) {
  MemoryState state;
  const at::Tensor value = at::arange(3);
  state.tensor("tensor", value);
  state.integer("integer", 7);
  state.text("text", "seven");
  value.zero_();
  EXPECT_TRUE(state.tensor("tensor").equal(at::arange(3)));
  state.tensor("tensor").zero_();
  EXPECT_TRUE(state.tensor("tensor").equal(at::arange(3)));
  EXPECT_EQ(state.integer("integer"), 7);
  EXPECT_EQ(state.text("text"), "seven");
  EXPECT_TRUE(state.has("text"));
}

TEST(MemoryStateTest, KeepsEveryByteOfAText) {
  MemoryState state;
  state.text("text", std::string("a\0b", 3));
  EXPECT_EQ(state.text("text"), std::string("a\0b", 3));
}

TEST(MemoryStateTest, IsWrittenOnUnderAPrefix) {
  MemoryState state;
  state.tensor("t", at::arange(3));
  state.integer("i", 2);
  state.text("s", "three");
  MemoryState all;
  all.integer("i", 99);
  state.replay(all, "inner.");
  EXPECT_TRUE(all.tensor("inner.t").equal(at::arange(3)));
  EXPECT_EQ(all.integer("inner.i"), 2);
  EXPECT_EQ(all.text("inner.s"), "three");
  EXPECT_EQ(all.integer("i"), 99);
}

TEST(MemoryStateTest, RefusesASecondValueAnAbsentOneAndAnotherType) {
  MemoryState state;
  state.integer("a", 7);
  EXPECT_THROW(state.text("a", "seven"), PluginError);
  EXPECT_THROW(state.integer("b"), DataError);
  EXPECT_THROW(state.text("a"), DataError);
  EXPECT_FALSE(state.has("b"));
}

}  // namespace
}  // namespace tally::testing
