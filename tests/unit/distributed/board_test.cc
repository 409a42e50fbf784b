#include "distributed/board.h"

#include "distributed/board_publisher.h"
#include "support/rank_threads.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tally/error.h>
#include <unistd.h>

#include <cstdlib>

namespace tally::distributed {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::ThrowsMessage;

TEST(BoardTest, StartsEmpty) {
  for (const auto& board : {Board::in_memory(2), Board::create_inherited(2)}) {
    const BoardRecord record = board->read(1);
    EXPECT_EQ(record.window, -1);
    EXPECT_EQ(record.finished, 0);
    EXPECT_EQ(record.last_window, -1);
    EXPECT_EQ(record.phase, Phase::kStarting);
    EXPECT_EQ(text_of(record.trainer), "none");
    EXPECT_EQ(record.message[0], '\0');
  }
}

TEST(BoardTest, WhoOpensTheInheritedBoardSeesWhatOthersWrite) {
  const auto ours = Board::create_inherited(3);
  const auto theirs = Board::open(ours->inherited_path(), 3);
  BoardWriter writer(theirs, 1);
  writer.phase(Phase::kBackward);
  writer.window(41);
  writer.finished(40);
  writer.last_window(100);
  writer.progress(0.25, 12345);
  writer.fail("the disk is full");
  const BoardRecord record = ours->read(1);
  EXPECT_EQ(record.phase, Phase::kBackward);
  EXPECT_EQ(record.window, 41);
  EXPECT_EQ(record.finished, 40);
  EXPECT_EQ(record.last_window, 100);
  EXPECT_EQ(record.loss, 0.25);
  EXPECT_EQ(record.tokens, 12345);
  EXPECT_EQ(record.pid, ::getpid());
  EXPECT_STREQ(record.message.data(), "the disk is full");
  EXPECT_EQ(ours->read(0).window, -1);
  EXPECT_EQ(ours->read(2).window, -1);
}

TEST(BoardTest, AChildProcessWritesWhereItsLauncherReads) {
  const auto board = Board::create_inherited(2);
  const pid_t child = ::fork();
  if (child == 0) {
    BoardWriter(Board::open(board->inherited_path(), 2), 1).window(7);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(board->read(1).window, 7);
  EXPECT_EQ(board->read(1).pid, child);
}

TEST(BoardTest, TheBoardOutlivesARankThatWasKilled) {
  const auto board = Board::create_inherited(1);
  const pid_t child = ::fork();
  if (child == 0) {
    BoardWriter writer(Board::open(board->inherited_path(), 1), 0);
    writer.collective(CollectiveKind::kGradientBucket, 5, false);
    std::abort();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(text_of(board->read(0).trainer), "all-reduce of gradient bucket 5 (waiting)");
}

TEST(BoardTest, RefusesABoardOfAnotherRun) {
  const auto board = Board::create_inherited(2);
  EXPECT_THAT([&] { Board::open(board->inherited_path(), 3); },
              ThrowsMessage<RankError>(HasSubstr("is no board of 3 ranks; it belongs to another "
                                                 "run")));
  EXPECT_THAT([&] { Board::open("/nonexistent/board", 2); },
              ThrowsMessage<RankError>(
                  HasSubstr("cannot open the board /nonexistent/board: No such file")));
}

TEST(BoardTest, ALongMessageIsCut) {
  const auto board = Board::in_memory(1);
  BoardWriter(board, 0).fail(std::string(10000, 'x'));
  EXPECT_EQ(std::string(board->read(0).message.data()), std::string(2047, 'x'));
}

TEST(BoardTest, ALineTellsRankWindowPhaseTimeAndCollectives) {
  const auto board = Board::in_memory(2);
  BoardWriter writer(board, 1);
  writer.window(37);
  writer.phase(Phase::kReducing);
  writer.collective(CollectiveKind::kGradientBucket, 2, false);
  writer.collective(CollectiveKind::kControlRecord, 38, true);
  writer.fail("the sampler threw");
  const std::string text = describe(*board);
  EXPECT_THAT(text, HasSubstr("  rank 0: before window 0, starting for 0.0 s; last collective: "
                              "none; control: none\n"));
  EXPECT_THAT(text, HasSubstr("  rank 1: window 37, reducing gradients for 0.0 s; last collective: "
                              "all-reduce of gradient bucket 2 (waiting); control: control record "
                              "38 (done)\n    it said: the sampler threw\n"));
}

TEST(BoardTest, EveryPhaseAndCollectiveHasAName) {
  for (int32_t phase = 0; phase <= static_cast<int32_t>(Phase::kFinished); ++phase)
    EXPECT_NE(name_of(static_cast<Phase>(phase)), "unknown") << phase;
  for (int32_t kind = 0; kind <= static_cast<int32_t>(CollectiveKind::kPolicy); ++kind)
    EXPECT_NE(name_of(static_cast<CollectiveKind>(kind)), "unknown") << kind;
}

TEST(BoardPublisherTest, RanksWithoutASharedFileSeeEachOtherThroughTheStore) {
  run_ranks_well(2, [](const Membership& self, const BoardWriter&) {
    const Rendezvous rendezvous(self, kTestTimeout);
    const auto board = Board::in_memory(2);
    BoardWriter writer(board, self.rank);
    writer.window(10 + self.rank);
    BoardPublisher publisher(rendezvous, board);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const int64_t other = 1 - self.rank;
    while (board->read(other).window < 0 && std::chrono::steady_clock::now() < deadline)
      publisher.collect();
    EXPECT_EQ(board->read(other).window, 10 + other);
    EXPECT_EQ(board->read(self.rank).window, 10 + self.rank);
    rendezvous.require_equal({{"done", "yes"}});  // neither leaves before the other has read
  });
}

}  // namespace
}  // namespace tally::distributed
