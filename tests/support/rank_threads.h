#pragma once

#include "distributed/board.h"
#include "distributed/groups.h"
#include "distributed/membership.h"
#include "distributed/rendezvous.h"
#include "distributed/store_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace tally::distributed {

/// Long enough for a busy machine, short enough to see a test that hangs.
constexpr std::chrono::milliseconds kTestTimeout{20000};

/// A rank's place in a run whose store the test serves, as under our launcher.
inline Membership test_member(int64_t rank, int64_t world, uint16_t port) {
  Membership self;
  self.rank = rank;
  self.world = world;
  self.local_rank = rank;
  self.local_world = world;
  self.launcher = "tally";
  self.address = "127.0.0.1";
  self.port = port;
  self.external_store = true;
  self.run_id = "test";
  return self;
}

/// Runs `body` once a rank, each on a thread of its own; all share one board. Returns what each
/// rank threw, null where it ended well.
inline std::vector<std::exception_ptr> run_ranks(
    int64_t world, const std::function<void(const Membership&, BoardWriter)>& body) {
  // The store looks up the name of each client; a name server that is slow must not make a test so.
  ::setenv("RES_OPTIONS", "timeout:1 attempts:1", /*overwrite=*/0);
  const StoreServer server(kTestTimeout);
  const std::shared_ptr<Board> board = Board::in_memory(world);
  std::vector<std::exception_ptr> failures(static_cast<size_t>(world));
  {
    std::vector<std::jthread> threads;
    for (int64_t rank = 0; rank < world; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(test_member(rank, world, server.port()), BoardWriter(board, rank));
        } catch (...) {
          failures[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  return failures;
}

/// What an exception says; empty for none.
inline std::string text_of(const std::exception_ptr& failure) {
  if (!failure) return {};
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// The text of an exception of type E; a test failure, and empty, for any other and for none.
template <class E>
std::string text_of_a(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type was thrown: " << error.what();
  }
  return {};
}

/// run_ranks, where no rank may fail.
inline void run_ranks_well(int64_t world,
                           const std::function<void(const Membership&, BoardWriter)>& body) {
  const auto failures = run_ranks(world, body);
  for (size_t rank = 0; rank < failures.size(); ++rank)
    EXPECT_EQ(text_of(failures[rank]), "") << "rank " << rank;
}

/// run_ranks_well with a Gloo group of CPU tensors on each rank.
inline void run_group(int64_t world, const std::function<void(Group&)>& body) {
  run_ranks_well(world, [&](const Membership& self, const BoardWriter& board) {
    const Rendezvous rendezvous(self, kTestTimeout);
    Group group(rendezvous, "test", Transport::kGloo, c10::kCPU, board);
    body(group);
  });
}

}  // namespace tally::distributed
