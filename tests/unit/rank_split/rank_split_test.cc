#include "python.h"

#include <tally/plugin.h>
#include <tally/testing/fakes.h>

#include <gmock/gmock.h>

#include <ATen/ops/zeros.h>

#include <random>
#include <set>

extern "C" const tally::PluginDescriptor tally_plugin_v1;

namespace {

using tally::MemoryState;
using tally::testing::FakeConfig;
using tally::testing::FakeContext;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Options {
  int64_t seed = 1;
  int64_t shards = 2;
  int64_t accumulation = 2;
  int64_t batch_size = 8;
  int64_t split_length = 64;
};

/// A sampler and what it must not outlive.
struct Subject {
  explicit Subject(const Options& o)
      : context(FakeConfig{{"split_length", o.split_length}},
                FakeConfig{{"shards", o.shards},
                           {"accumulation", o.accumulation},
                           {"batch_size", o.batch_size}},
                o.seed),
        sampler(static_cast<tally::Sampler*>(tally_plugin_v1.hooks[0].create(context))) {}

  std::vector<int64_t> ids(int64_t window) {
    std::vector<int64_t> ids;
    const tally::WindowPlan plan = sampler->plan(window).value();
    EXPECT_EQ(plan.window, window);
    for (const auto& shard : plan.shards) {
      for (const auto& microbatch : shard)
        ids.insert(ids.end(), microbatch.begin(), microbatch.end());
    }
    return ids;
  }

  FakeContext context;
  std::unique_ptr<tally::Sampler> sampler;
};

tally::ExampleTable examples(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  tally::ExampleTable table;
  for (size_t i = 0; i < count; ++i)
    table.lengths.push_back(16 + static_cast<int64_t>(random() % 113));
  return table;
}

std::vector<std::vector<int64_t>> python_windows(const Options& o, const tally::ExampleTable& table,
                                                 int64_t windows) {
  std::string lengths;
  for (const int64_t length : table.lengths) lengths += std::to_string(length) + " ";
  std::string arguments = "windows";
  for (const int64_t number :
       {o.seed, o.shards, o.accumulation, o.batch_size, o.split_length, windows}) {
    arguments += " " + std::to_string(number);
  }
  return ask_python(arguments, lengths);
}

TEST(RankSplit, DrawsPythonsThousandWindows) {
  const std::pair<Options, size_t> cases[] = {
      {{}, 1024},
      {{.seed = 0, .shards = 4}, 1024},
      {{.seed = 1234567890123, .shards = 3, .accumulation = 3, .batch_size = 4}, 1024},
      {{.seed = -7}, 1024},
      {{.seed = -10}, 1024},
      {{.seed = -123456789012, .shards = 2, .accumulation = 1, .batch_size = 1}, 64},
      {{.seed = INT64_MAX, .shards = 5, .accumulation = 1, .batch_size = 5}, 70},
      {{.seed = INT64_MIN, .shards = 1, .accumulation = 1, .batch_size = 20}, 60},
      {{.seed = 3, .shards = 2, .accumulation = 2, .batch_size = 9, .split_length = 100}, 100}};
  for (const auto& [options, count] : cases) {
    SCOPED_TRACE("seed " + std::to_string(options.seed));
    const tally::ExampleTable table = examples(count);
    const auto python = python_windows(options, table, 1000);
    ASSERT_EQ(python.size(), 1000U);
    Subject subject(options);
    subject.sampler->prepare(table);
    for (int64_t window = 0; window < 1000; ++window) {
      ASSERT_EQ(subject.ids(window), python[static_cast<size_t>(window)]) << "window " << window;
    }
  }
}

TEST(RankSplit, KeepsShardsToTheirPoolAndDrawsNothingTwiceInAWindow) {
  std::mt19937 random(11);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random()) % (high - low + 1);
  };
  for (int round = 0; round < 200; ++round) {
    const Options options{.seed = draw(0, 1 << 30),
                          .shards = draw(1, 6),
                          .accumulation = draw(1, 4),
                          .batch_size = draw(1, 8),
                          .split_length = draw(50, 89)};
    const tally::ExampleTable table = examples(600, static_cast<uint32_t>(round));
    Subject subject(options);
    subject.sampler->prepare(table);
    for (int64_t window = 0; window < 3; ++window) {
      const tally::WindowPlan plan = subject.sampler->plan(window).value();
      ASSERT_EQ(static_cast<int64_t>(plan.shards.size()), options.shards);
      std::set<int64_t> seen;
      for (size_t shard = 0; shard < plan.shards.size(); ++shard) {
        ASSERT_EQ(static_cast<int64_t>(plan.shards[shard].size()), options.accumulation);
        for (const auto& microbatch : plan.shards[shard]) {
          ASSERT_EQ(static_cast<int64_t>(microbatch.size()), options.batch_size);
          for (const int64_t id : microbatch) {
            EXPECT_TRUE(seen.insert(id).second) << "id " << id << " twice in window " << window;
            const bool is_long = table.lengths.at(static_cast<size_t>(id)) > options.split_length;
            EXPECT_EQ(is_long, shard % 2 == 1) << "id " << id << " on shard " << shard;
          }
        }
      }
    }
  }
}

TEST(RankSplit, ContinuesFromTheStateOfAnyWindow) {
  const tally::ExampleTable table = examples(300);
  const Options options{.seed = 5};
  Subject whole(options);
  whole.sampler->prepare(table);
  std::vector<std::vector<int64_t>> ids;
  std::vector<MemoryState> states(40);
  for (int64_t window = 0; window < 40; ++window) {
    whole.sampler->save_state(states[static_cast<size_t>(window)]);
    ids.push_back(whole.ids(window));
  }
  for (int64_t from = 0; from < 40; ++from) {
    Subject resumed({.seed = 999});  // everything comes from the state, not from the seed
    resumed.sampler->prepare(table);
    resumed.sampler->load_state(states[static_cast<size_t>(from)]);
    for (int64_t window = from; window < 40; ++window) {
      ASSERT_EQ(resumed.ids(window), ids[static_cast<size_t>(window)])
          << "window " << window << " from " << from;
    }
  }
}

TEST(RankSplit, StateIsTheOneOfPythonsGetstate) {
  Subject subject({.seed = 32});
  MemoryState state;
  subject.sampler->save_state(state);
  const auto python = ask_python("random 42", "state\n");
  const at::Tensor words = state.tensor("generator");
  ASSERT_EQ(words.scalar_type(), at::kLong);
  const int64_t* values = words.const_data_ptr<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(values, values + words.numel()), python.at(0));
  EXPECT_EQ(state.integer("next_window"), 0);
}

TEST(RankSplit, PlansConsecutiveWindowsFromAnyFirstOne) {
  Subject subject({});
  subject.sampler->prepare(examples(300));
  subject.ids(7);
  EXPECT_THAT([&] { subject.sampler->plan(7); },
              ThrowsMessage<std::logic_error>(
                  AllOf(HasSubstr("asked for window 7"), HasSubstr("window 8 is next"))));
  EXPECT_THROW(subject.sampler->plan(9), std::logic_error);
  subject.ids(8);
}

TEST(RankSplit, RefusesAStateThatDoesNotFit) {
  const auto load = [](const at::Tensor& words, int64_t next_window) {
    MemoryState state;
    state.tensor("generator", words);
    state.integer("next_window", next_window);
    Subject subject({});
    subject.sampler->load_state(state);
  };
  const at::Tensor good = at::zeros({625}, at::kLong).add(1);
  EXPECT_NO_THROW(load(good, 0));
  EXPECT_THAT([&] { load(good, -1); }, ThrowsMessage<tally::DataError>(HasSubstr("window -1")));
  EXPECT_THAT([&] { load(good.narrow(0, 0, 624), 0); },
              ThrowsMessage<tally::DataError>(HasSubstr("624 values")));
  EXPECT_THAT([&] { load(good.to(at::kInt), 0); },
              ThrowsMessage<tally::DataError>(HasSubstr("CPUIntType")));
  EXPECT_THAT([&] { load(good.mul(-5), 0); }, ThrowsMessage<tally::DataError>(HasSubstr("-5")));
  EXPECT_THAT([&] { load(good.mul(int64_t{1} << 32), 0); },
              ThrowsMessage<tally::DataError>(HasSubstr("4294967296")));
  EXPECT_THAT([&] { load(good.mul(626), 0); },
              ThrowsMessage<tally::DataError>(HasSubstr("index 626")));
  EXPECT_THROW(Subject({}).sampler->load_state(MemoryState()), tally::DataError);
}

TEST(RankSplit, NamesBothNumbersWhenAPoolIsTooSmall) {
  const tally::ExampleTable table{{10, 20, 30, 64, 65, 100}};
  const auto prepare = [&](const Options& options) {
    Subject subject(options);
    subject.sampler->prepare(table);
  };
  EXPECT_NO_THROW(prepare({.accumulation = 1, .batch_size = 2}));
  EXPECT_NO_THROW(prepare({.shards = 1, .accumulation = 2, .batch_size = 2}));
  EXPECT_THAT([&] { prepare({.accumulation = 1, .batch_size = 3}); },
              ThrowsMessage<tally::ConfigError>(
                  AllOf(HasSubstr("batch_size"),
                        HasSubstr("takes 3 examples of length more than 64"), HasSubstr("has 2"),
                        HasSubstr("; lower window.batch_size, change sampler.split_length"))));
  EXPECT_THAT(
      [&] { prepare({.shards = 1, .accumulation = 5, .batch_size = 1}); },
      ThrowsMessage<tally::ConfigError>(
          AllOf(HasSubstr("with 5 microbatches on 1 shard, a window takes 5 examples of length at "
                          "most 64"),
                HasSubstr("has 4; lower window.accumulation, change"))));
}

TEST(RankSplit, NeverAsksToLowerAOne) {
  Subject subject({.shards = 2, .accumulation = 1, .batch_size = 1});
  EXPECT_THAT([&] { subject.sampler->prepare({{10}}); },
              ThrowsMessage<tally::ConfigError>(
                  AllOf(HasSubstr("takes 1 example of length more than 64"),
                        HasSubstr("has 0; change sampler.split_length, or add data"))));
}

TEST(RankSplit, SplitsAfter64ByDefault) {
  FakeContext context;
  const std::unique_ptr<tally::Sampler> sampler(
      static_cast<tally::Sampler*>(tally_plugin_v1.hooks[0].create(context)));
  sampler->prepare({{65, 64}});
  const tally::WindowPlan plan = sampler->plan(0).value();
  EXPECT_EQ(plan.shards[0][0], tally::Microbatch{1});
  EXPECT_EQ(plan.shards[1][0], tally::Microbatch{0});
}

TEST(RankSplit, ReadsItsKeysAndRefusesWhatCannotBe) {
  for (const char* key : {"shards", "accumulation", "batch_size"}) {
    for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{1'000'001}}) {
      Options options;
      (std::string(key) == "shards"         ? options.shards
       : std::string(key) == "accumulation" ? options.accumulation
                                            : options.batch_size) = value;
      EXPECT_THAT([&] { Subject subject(options); },
                  ThrowsMessage<tally::ConfigError>(AllOf(HasSubstr(key), HasSubstr("between 1"))));
    }
  }
  EXPECT_THAT([&] { Subject subject({.split_length = -1}); },
              ThrowsMessage<tally::ConfigError>(HasSubstr("split_length")));
  FakeContext empty(FakeConfig{}, FakeConfig{});
  EXPECT_THAT([&] { tally_plugin_v1.hooks[0].create(empty); },
              ThrowsMessage<tally::ConfigError>(HasSubstr("shards")));
  EXPECT_TRUE(Subject({}).context.config().unread().empty());
}

}  // namespace
