#include "distributed/rendezvous.h"

#include "support/rank_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

namespace tally::distributed {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(RendezvousTest, NamesTheRanksThatNeverCame) {
  const StoreServer server(kTestTimeout);
  const double took = seconds_of([&] {
    EXPECT_THAT([&] { Rendezvous(test_member(1, 4, server.port()), seconds(1)); },
                ThrowsMessage<RankError>(
                    StartsWith("rank 1 waited 1 s (run.timeout) for all 4 ranks, and rank 0, 2, 3 "
                               "never came; start the missing")));
  });
  EXPECT_GE(took, 1.0);
  EXPECT_LT(took, 4.0);
}

TEST(RendezvousTest, SaysThatThePortIsInUse) {
  const StoreServer server(kTestTimeout);
  Membership self = test_member(0, 2, server.port());
  self.external_store = false;
  EXPECT_THAT(
      [&] { Rendezvous(self, seconds(2)); },
      ThrowsMessage<RankError>(AllOf(
          StartsWith(fmt::format("rank 0 cannot serve the store on 127.0.0.1:{}: ", server.port())),
          HasSubstr("The port is in use or not allowed; set MASTER_PORT to a free "
                    "one"),
          Not(HasSubstr("\n")))));
}

TEST(RendezvousTest, SaysWhereNoStoreAnswered) {
  uint16_t port = 0;
  {
    const StoreServer server(kTestTimeout);
    port = server.port();
  }
  const double took = seconds_of([&] {
    EXPECT_THAT([&] { Rendezvous(test_member(1, 2, port), seconds(1)); },
                ThrowsMessage<RankError>(AllOf(
                    StartsWith(fmt::format(
                        "rank 1 could not reach the store at 127.0.0.1:{} within 1 s: ", port)),
                    HasSubstr("MASTER_ADDR and MASTER_PORT"), Not(HasSubstr("\n")))));
  });
  EXPECT_LT(took, 10.0) << "LibTorch tries twice";
}

TEST(RendezvousTest, RankZeroServesTheStoreWhereTheLauncherDoesNot) {
  uint16_t port = 0;
  {
    const StoreServer server(kTestTimeout);
    port = server.port();
  }
  run_ranks_well(3, [&](const Membership& launched, const BoardWriter&) {
    Membership self = launched;
    self.port = port;
    self.external_store = false;
    const Rendezvous rendezvous(self, kTestTimeout);
    rendezvous.require_equal({{"recipe", "a"}});
  });
}

TEST(RendezvousTest, RankZeroKeepsItsStoreUntilAllHaveSeenTheDifference) {
  uint16_t port = 0;
  {
    const StoreServer server(kTestTimeout);
    port = server.port();
  }
  const auto failures = run_ranks(3, [&](const Membership& launched, const BoardWriter&) {
    Membership self = launched;
    self.port = port;
    self.external_store = false;
    const Rendezvous rendezvous(self, kTestTimeout);
    // Rank 0 fails first; the others come late to the comparison.
    if (self.rank > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100 * self.rank));
    rendezvous.require_equal({{"recipe", self.rank == 1 ? "b" : "a"}});
  });
  for (const std::exception_ptr& failure : failures)
    EXPECT_THAT(text_of_a<ConfigError>(failure), HasSubstr("recipe has "));
}

TEST(RendezvousTest, EqualIdentitiesPass) {
  run_ranks_well(3, [](const Membership& self, const BoardWriter&) {
    Rendezvous(self, kTestTimeout).require_equal({{"recipe", "a"}, {"plugin x", "b"}});
  });
}

TEST(RendezvousTest, EveryRankSaysWhatDiffersAndBetweenWhom) {
  const auto failures = run_ranks(3, [](const Membership& self, const BoardWriter&) {
    Rendezvous(self, kTestTimeout)
        .require_equal({{"recipe", "same"}, {"plugin x", self.rank == 2 ? "new" : "old"}});
  });
  for (const size_t rank : {0U, 1U}) {
    EXPECT_THAT(text_of_a<ConfigError>(failures[rank]),
                StartsWith(fmt::format("ranks do not run the same job: plugin x has old on rank {} "
                                       "and new on rank 2",
                                       rank)));
  }
  EXPECT_THAT(text_of_a<ConfigError>(failures[2]),
              HasSubstr("has new on rank 2 and old on rank 0"));
}

TEST(RendezvousTest, AThingThatOnlyOneRankHasIsADifferenceForBoth) {
  const auto failures = run_ranks(2, [](const Membership& self, const BoardWriter&) {
    Identity identity{{"recipe", "same"}};
    if (self.rank == 1) identity["plugin x"] = "new";
    Rendezvous(self, kTestTimeout).require_equal(identity);
  });
  EXPECT_THAT(text_of_a<ConfigError>(failures[0]),
              HasSubstr("plugin x has nothing on rank 0 and new on rank 1"));
  EXPECT_THAT(text_of_a<ConfigError>(failures[1]),
              HasSubstr("plugin x has new on rank 1 and nothing on rank 0"));
}

TEST(RendezvousTest, ARankThatLeavesBeforeTheComparisonIsNamed) {
  const auto failures = run_ranks(2, [](const Membership& self, const BoardWriter&) {
    const Rendezvous rendezvous(self, seconds(2));
    if (self.rank == 0) rendezvous.require_equal({{"recipe", "a"}});
  });
  EXPECT_THAT(text_of_a<RankError>(failures[0]),
              AllOf(HasSubstr("rank 0"), HasSubstr("rank 1"), Not(HasSubstr("\n"))));
}

TEST(RendezvousTest, TwoRunsOverOneStoreDoNotMeet) {
  const StoreServer server(kTestTimeout);
  Membership first = test_member(0, 1, server.port());
  Membership second = first;
  second.run_id = "another";
  const Rendezvous a(first, kTestTimeout);
  const Rendezvous b(second, kTestTimeout);
  a.require_equal({{"recipe", "a"}});
  b.require_equal({{"recipe", "b"}});
}

TEST(RendezvousTest, AWorldOfOneNeedsNoNetwork) {
  const Rendezvous alone = Rendezvous::alone();
  EXPECT_EQ(alone.self().world, 1);
  alone.require_equal({{"recipe", "a"}});
}

}  // namespace
}  // namespace tally::distributed
