#include "distributed/control_record.h"

#include "support/rank_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

#include <bit>
#include <limits>
#include <random>

namespace tally::distributed {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

Digest random_digest(std::mt19937_64& random) {
  std::array<uint8_t, Digest::kBytes> bytes{};
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return Digest(bytes);
}

double random_double(std::mt19937_64& random) {
  // Any bits at all: NaNs with their payload, infinities and denormals among them.
  switch (random() % 4) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return -std::numeric_limits<double>::infinity();
    default:
      return std::bit_cast<double>(random());
  }
}

ControlRecord random_record(std::mt19937_64& random, int64_t rank, int64_t world, int64_t shards,
                            int64_t terms) {
  const auto count = [&] { return static_cast<int64_t>(random() >> 4); };
  ControlRecord record;
  record.window = static_cast<int64_t>(random() % 1000000);
  record.step = static_cast<int64_t>(random() % 3) - 1;
  record.has_data = random() % 4 != 0;
  record.stop = random() % 5 == 0
                    ? Stop::by_failed_save()
                    : Stop::by_signal(random() % 3 == 0 ? static_cast<int64_t>(random() % 64) : 0);
  record.chain = random_digest(random);
  for (int64_t shard = rank; record.has_data && shard < shards; shard += world) {
    ShardRecord entry{shard, static_cast<int64_t>(random() % 100), {}};
    for (int64_t t = 0; t < terms; ++t) entry.counts.push_back(count());
    record.shards.push_back(entry);
  }
  if (random() % 3 != 0) {
    FinishedWindow finished;
    finished.window = static_cast<int64_t>(random() % 1000000);
    finished.finite = random() % 2 == 0;
    finished.objective = random_double(random);
    finished.gradient_norm = random_double(random);
    for (int64_t t = 0; t < terms; ++t) {
      finished.sums.push_back(random_double(random));
      finished.counts.push_back(count());
    }
    record.finished = finished;
  }
  return record;
}

uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }

void expect_equal(const ControlRecord& a, const ControlRecord& b) {
  EXPECT_EQ(a.window, b.window);
  EXPECT_EQ(a.has_data, b.has_data);
  EXPECT_TRUE(a.stop == b.stop);
  EXPECT_EQ(a.chain, b.chain);
  ASSERT_EQ(a.shards.size(), b.shards.size());
  for (size_t i = 0; i < a.shards.size(); ++i) {
    EXPECT_EQ(a.shards[i].shard, b.shards[i].shard);
    EXPECT_EQ(a.shards[i].microbatches, b.shards[i].microbatches);
    EXPECT_EQ(a.shards[i].counts, b.shards[i].counts);
  }
  ASSERT_EQ(a.finished.has_value(), b.finished.has_value());
  if (!a.finished) return;
  EXPECT_EQ(a.finished->window, b.finished->window);
  EXPECT_EQ(a.finished->finite, b.finished->finite);
  EXPECT_EQ(bits(a.finished->objective), bits(b.finished->objective));
  EXPECT_EQ(bits(a.finished->gradient_norm), bits(b.finished->gradient_norm));
  EXPECT_EQ(a.finished->counts, b.finished->counts);
  ASSERT_EQ(a.finished->sums.size(), b.finished->sums.size());
  for (size_t t = 0; t < a.finished->sums.size(); ++t)
    EXPECT_EQ(bits(a.finished->sums[t]), bits(b.finished->sums[t]));
}

class ControlRecordTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(ControlRecordTest, EveryBitOfARecordSurvivesItsEncoding) {
  run_group(GetParam(), [](Group& group) {
    std::mt19937_64 random(static_cast<uint64_t>(group.rank()));
    for (const int64_t shards : {1, 2, 5}) {
      for (const int64_t terms : {1, 3}) {
        const ControlChannel channel(group, shards, terms);
        size_t length = 0;
        for (int repeat = 0; repeat < 200; ++repeat) {
          const ControlRecord record =
              random_record(random, group.rank(), group.world(), shards, terms);
          const std::vector<int64_t> values = channel.encode(record);
          if (length == 0) length = values.size();
          ASSERT_EQ(values.size(), length) << "Gloo aborts when ranks send unequal lengths";
          expect_equal(channel.decode(values.data()), record);
        }
      }
    }
  });
}

TEST_P(ControlRecordTest, EveryRankConcludesTheSameFromUnevenShares) {
  const int64_t world = GetParam();
  constexpr int64_t kShards = 5;
  std::vector<Agreement> agreements(static_cast<size_t>(world));
  run_group(world, [&](Group& group) {
    ControlChannel channel(group, kShards, 2);
    ControlRecord record;
    record.window = 4;
    record.has_data = true;
    for (int64_t s = group.rank(); s < kShards; s += group.world())
      record.shards.push_back({s, s, {int64_t{1} << 31, s}});
    record.finished = {.window = 2,
                       .finite = true,
                       .objective = 0.5 * static_cast<double>(group.rank()),
                       .gradient_norm = 3.0,
                       .sums = {1.5, 2.5},
                       .counts = {group.rank(), 7}};
    record.stop = Stop::by_signal(group.rank() == 0 ? 0 : 10 + group.rank());
    agreements[static_cast<size_t>(group.rank())] = channel.exchange(record);
  });
  for (const Agreement& agreement : agreements) {
    EXPECT_EQ(agreement.window, 4);
    EXPECT_TRUE(agreement.has_data);
    EXPECT_EQ(agreement.stop.signal, world == 1 ? 0 : 11) << "the smallest of those that stop";
    EXPECT_THAT(agreement.global_counts, ElementsAre(5 * (int64_t{1} << 31), 10));
    ASSERT_EQ(agreement.counts_by_rank.size(), static_cast<size_t>(world));
    for (int64_t rank = 0; rank < world; ++rank) {
      int64_t shards = 0;
      int64_t passes = 0;
      for (int64_t s = rank; s < kShards; s += world, ++shards) passes += s;
      const auto r = static_cast<size_t>(rank);
      EXPECT_THAT(agreement.counts_by_rank[r], ElementsAre(shards * (int64_t{1} << 31), passes));
      EXPECT_EQ(agreement.passes_by_rank[r], passes);
      EXPECT_EQ(agreement.finished[r]->objective, 0.5 * static_cast<double>(rank));
      EXPECT_THAT(agreement.finished[r]->counts, ElementsAre(rank, 7));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, ControlRecordTest, ::testing::Values(1, 2, 3, 4));

/// Three equal records, of which `change` alters one.
std::vector<ControlRecord> records(size_t changed,
                                   const std::function<void(ControlRecord&)>& change) {
  std::mt19937_64 random(1);
  const Digest chain = random_digest(random);
  std::vector<ControlRecord> result(3);
  for (size_t rank = 0; rank < result.size(); ++rank) {
    result[rank].window = 9;
    result[rank].has_data = true;
    result[rank].chain = chain;
    result[rank].shards = {{static_cast<int64_t>(rank), 1, {1}}};
  }
  change(result[changed]);
  return result;
}

TEST(StopTest, AFailedSaveCountsMoreThanASignalAndOfTwoSignalsTheSmaller) {
  const Stop none;
  const Stop failed = Stop::by_failed_save();
  const Stop interrupt = Stop::by_signal(2);
  const Stop terminate = Stop::by_signal(15);
  EXPECT_FALSE(none.requested() || Stop::by_signal(0).requested());
  EXPECT_TRUE(failed.requested() && interrupt.requested());
  const auto expect_agreed = [](const Stop& one, const Stop& other, const Stop& wanted) {
    EXPECT_TRUE(agreed(one, other) == wanted);
    EXPECT_TRUE(agreed(other, one) == wanted);
  };
  expect_agreed(none, none, none);
  expect_agreed(none, terminate, terminate);
  expect_agreed(none, failed, failed);
  expect_agreed(interrupt, terminate, interrupt);
  expect_agreed(failed, interrupt, failed);
}

TEST(ControlFoldTest, NamesTheRankWhosePlanDiffers) {
  run_group(1, [](Group& group) {
    const ControlChannel channel(group, 3, 1);
    const auto other_chain = [](ControlRecord& record) { record.chain = sha256("another plan"); };
    EXPECT_THAT([&] { channel.fold(records(2, other_chain)); },
                ThrowsMessage<PluginError>(AllOf(
                    HasSubstr("the sampler's plans differ: rank 0 has window 9, data, chain "),
                    HasSubstr("rank 2 has window 9, data, chain " +
                              sha256("another plan").hex().substr(0, 16)),
                    Not(HasSubstr("rank 1")))));
    EXPECT_THAT([&] { channel.fold(records(0, other_chain)); },
                ThrowsMessage<PluginError>(AllOf(HasSubstr("rank 1 has"), HasSubstr("rank 2 has"))))
        << "from rank 0 both others differ";
    const auto no_data = [](ControlRecord& record) { record.has_data = false; };
    EXPECT_THAT([&] { channel.fold(records(1, no_data)); },
                ThrowsMessage<PluginError>(HasSubstr("rank 1 has window 9, no data left, chain ")));
    const auto other_window = [](ControlRecord& record) { record.window = 10; };
    EXPECT_THAT([&] { channel.fold(records(1, other_window)); },
                ThrowsMessage<PluginError>(HasSubstr("rank 1 has window 10, data, chain ")));
    EXPECT_NO_THROW(channel.fold(records(1, [](ControlRecord&) {})));
  });
}

TEST(ControlFoldTest, AddsCountsThatTogetherPassThirtyTwoBits) {
  run_group(1, [](Group& group) {
    const ControlChannel channel(group, 3, 1);
    std::vector<ControlRecord> all = records(0, [](ControlRecord&) {});
    all[0].shards[0].counts = {1073741824};
    all[1].shards[0].counts = {1073741819};
    all[2].shards[0].counts = {17};
    EXPECT_THAT(channel.fold(all).global_counts, ElementsAre(2147483660));
  });
}

TEST(ControlChannelTest, ALostRankIsNamedByTheWindowOfTheRecord) {
  const auto failures = run_ranks(2, [](const Membership& self, const BoardWriter& board) {
    const Rendezvous rendezvous(self, kTestTimeout);
    Group group(rendezvous, "control", Transport::kGloo, c10::kCPU, board);
    if (self.rank == 1) return;
    ControlChannel channel(group, 2, 1);
    ControlRecord record;
    record.window = 12;
    channel.exchange(record);
  });
  EXPECT_THAT(text_of_a<RankError>(failures[0]),
              HasSubstr("rank 0 lost contact in the control record 12"));
}

}  // namespace
}  // namespace tally::distributed
