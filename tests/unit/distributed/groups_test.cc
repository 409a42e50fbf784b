#include "distributed/groups.h"

#include "support/rank_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>
#include <torch/torch.h>

namespace tally::distributed {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr CollectiveKind kKind = CollectiveKind::kPolicy;

TEST(GroupsTest, AllReduceSumsAndPicksTheExtremes) {
  run_group(3, [](Group& group) {
    const auto reduced = [&](ReduceOp op) {
      const auto rank = static_cast<double>(group.rank());
      at::Tensor tensor = torch::tensor({{rank + 1.0, -10.0 * rank}});
      group.all_reduce(tensor, op, kKind, 0)->wait();
      return tensor;
    };
    EXPECT_TRUE(reduced(ReduceOp::kSum).equal(torch::tensor({{6.0, -30.0}})));
    EXPECT_TRUE(reduced(ReduceOp::kMin).equal(torch::tensor({{1.0, -20.0}})));
    EXPECT_TRUE(reduced(ReduceOp::kMax).equal(torch::tensor({{3.0, 0.0}})));
  });
}

TEST(GroupsTest, AllReduceOfIntegersIsExactPastThirtyTwoBits) {
  run_group(4, [](Group& group) {
    at::Tensor tensor = torch::full({2}, (int64_t{1} << 60) + group.rank(), at::kLong);
    group.all_reduce(tensor, ReduceOp::kSum, kKind, 0)->wait();
    EXPECT_EQ(tensor[1].item<int64_t>(), (int64_t{1} << 62) + 6);
  });
}

TEST(GroupsTest, AllGatherPutsRankByRank) {
  run_group(3, [](Group& group) {
    const at::Tensor input = torch::tensor({{group.rank() * 10, group.rank() * 10 + 1}});
    at::Tensor output = torch::empty({3, 2}, at::kLong);
    group.all_gather(output, input, kKind, 0)->wait();
    EXPECT_TRUE(output.equal(torch::tensor({{0, 1}, {10, 11}, {20, 21}})));
  });
}

TEST(GroupsTest, ReduceScatterGivesEachRankTheSumOfItsPiece) {
  run_group(3, [](Group& group) {
    const double own = static_cast<double>(group.rank() + 1);
    const at::Tensor input = torch::arange(6, at::kDouble).view({3, 2}) * own;
    at::Tensor output = torch::empty({2}, at::kDouble);
    group.reduce_scatter(output, input, kKind, 0)->wait();
    const double first = 2.0 * static_cast<double>(group.rank());
    EXPECT_TRUE(output.equal(torch::tensor({6.0 * first, 6.0 * (first + 1.0)}, at::kDouble)));
  });
}

TEST(GroupsTest, AllToAllSendsPieceRToRankR) {
  run_group(3, [](Group& group) {
    const at::Tensor input = torch::arange(6, at::kLong) + 100 * group.rank();
    at::Tensor output = torch::empty({6}, at::kLong);
    group.all_to_all(output, input, kKind, 0)->wait();
    const int64_t own = 2 * group.rank();
    EXPECT_TRUE(output.equal(
        torch::tensor({own, own + 1, 100 + own, 101 + own, 200 + own, 201 + own}, at::kLong)));
  });
}

TEST(GroupsTest, BroadcastComesFromItsRoot) {
  run_group(3, [](Group& group) {
    at::Tensor tensor = torch::full({2, 2}, group.rank(), at::kLong);
    group.broadcast(tensor, 2, kKind, 0)->wait();
    EXPECT_TRUE(tensor.equal(torch::full({2, 2}, 2, at::kLong)));
  });
}

TEST(GroupsTest, TheThreeGroupsDoNotMix) {
  run_ranks_well(2, [](const Membership& self, const BoardWriter& board) {
    const Rendezvous rendezvous(self, kTestTimeout);
    Groups groups(rendezvous, Transport::kGloo, c10::kCPU, board);
    at::Tensor a = torch::ones({1});
    at::Tensor b = torch::ones({1}) * 10;
    at::Tensor c = torch::ones({1}) * 100;
    // Started in another order on each rank: pairing by order would hold only inside a group.
    std::vector<std::unique_ptr<Work>> work;
    const auto start = [&](Group& group, at::Tensor tensor) {
      work.push_back(group.all_reduce(std::move(tensor), ReduceOp::kSum, kKind, 0));
    };
    if (self.rank == 0) {
      start(groups.control, a);
      start(groups.gradients, b);
      start(groups.state, c);
    } else {
      start(groups.state, c);
      start(groups.gradients, b);
      start(groups.control, a);
    }
    for (const auto& started : work) started->wait();
    EXPECT_EQ(a.item<float>(), 2.0F);
    EXPECT_EQ(b.item<float>(), 20.0F);
    EXPECT_EQ(c.item<float>(), 200.0F);
  });
}

TEST(GroupsTest, TheBoardShowsTheLastCollectiveOfEachThread) {
  run_ranks_well(2, [](const Membership& self, BoardWriter board) {
    const Rendezvous rendezvous(self, kTestTimeout);
    Group group(rendezvous, "test", Transport::kGloo, c10::kCPU, board);
    at::Tensor tensor = torch::ones({1});
    group.all_reduce(tensor, ReduceOp::kSum, CollectiveKind::kControlRecord, 8)->wait();
    const auto work = group.all_reduce(tensor, ReduceOp::kSum, CollectiveKind::kGradientBucket, 3);
    BoardRecord record = board.board()->read(self.rank);
    EXPECT_EQ(text_of(record.control), "control record 8 (done)");
    EXPECT_EQ(text_of(record.trainer), "all-reduce of gradient bucket 3 (waiting)");
    work->wait();
    record = board.board()->read(self.rank);
    EXPECT_EQ(text_of(record.trainer), "all-reduce of gradient bucket 3 (done)");
  });
}

/// Rank 0 reduces alone: `other` is what rank 1 does meanwhile with the group that it has joined.
std::string text_of_a_lonely_reduction(std::chrono::milliseconds timeout,
                                       const std::function<void()>& other) {
  const auto failures = run_ranks(2, [&](const Membership& self, BoardWriter board) {
    const Rendezvous rendezvous(self, timeout);
    Group group(rendezvous, "test", Transport::kGloo, c10::kCPU, board);
    if (self.rank == 1) {
      other();
      return;
    }
    board.window(7);
    at::Tensor tensor = torch::ones({4});
    group.all_reduce(tensor, ReduceOp::kSum, CollectiveKind::kGradientBucket, 3)->wait();
  });
  EXPECT_EQ(text_of(failures[1]), "");
  return text_of_a<RankError>(failures[0]);
}

TEST(GroupsTest, ALostPeerEndsTheWaitAtOnceAndTheCollectiveIsNamed) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(
      text_of_a_lonely_reduction(kTestTimeout, [] {}),
      StartsWith("rank 0 lost contact in the all-reduce of gradient bucket 3 at window 7: "));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10))
      << "long before the timeout of 20 s";
}

TEST(GroupsTest, ALatePeerEndsTheWaitAfterTheTimeout) {
  const auto start = std::chrono::steady_clock::now();
  const std::string text = text_of_a_lonely_reduction(
      std::chrono::seconds(1), [] { std::this_thread::sleep_for(std::chrono::seconds(3)); });
  EXPECT_THAT(text, HasSubstr("lost contact in the all-reduce of gradient bucket 3 at window 7: "));
  EXPECT_THAT(text, AnyOf(HasSubstr("Timed out waiting 1000ms"), HasSubstr("imeout")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("\n"))) << "no stack trace";
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(GroupsTest, APeerThatNeverJoinsTheGroupIsAnErrorWithItsName) {
  const auto failures = run_ranks(2, [](const Membership& self, const BoardWriter& board) {
    const Rendezvous rendezvous(self, std::chrono::seconds(2));
    if (self.rank == 0) Group(rendezvous, "gradients", Transport::kGloo, c10::kCPU, board);
  });
  EXPECT_THAT(text_of_a<RankError>(failures[0]),
              StartsWith("rank 0 cannot join the group 'gradients': "));
}

}  // namespace
}  // namespace tally::distributed
