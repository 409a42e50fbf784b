#include "distributed/rendezvous.h"

#include "distributed/store_server.h"
#include "process/ending.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <thread>

namespace tally::distributed {
namespace {

using std::chrono::milliseconds;

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

double seconds(milliseconds time) { return static_cast<double>(time.count()) * 1e-3; }

c10::intrusive_ptr<c10d::Store> connect(const Membership& self, milliseconds timeout) {
  const bool serves = self.rank == 0 && !self.external_store;
  try {
    if (serves) return serve_store(self.address, self.port, timeout);
    c10d::TCPStoreOptions options;
    options.port = self.port;
    options.waitWorkers = false;
    options.timeout = timeout;
    return c10::make_intrusive<c10d::TCPStore>(self.address, options);
  } catch (const std::exception& error) {
    if (serves) {
      throw RankError(
          fmt::format("rank 0 cannot serve the store on {}:{}: {}. The port is in use or not "
                      "allowed; set MASTER_PORT to a free one",
                      self.address, self.port, process::first_line(error)));
    }
    throw RankError(fmt::format(
        "rank {} could not reach the store at {}:{} within {:g} s: {}. Check that rank "
        "0 runs, and that MASTER_ADDR and "
        "MASTER_PORT are the same everywhere",
        self.rank, self.address, self.port, seconds(timeout), process::first_line(error)));
  }
}

std::string presence_key(int64_t rank) { return fmt::format("present/{}", rank); }
std::string identity_key(int64_t rank) { return fmt::format("identity/{}", rank); }
std::string compared_key(int64_t rank) { return fmt::format("compared/{}", rank); }

/// All that differs, as a sentence's end; nullopt for equal identities. Other plugins alone would
/// not say that another recipe names them.
std::optional<std::string> difference_of(const Identity& mine, int64_t my_rank,
                                         const Identity& theirs, int64_t their_rank) {
  const auto value = [](const Identity& of, const std::string& what) {
    const auto found = of.find(what);
    return found == of.end() ? "nothing" : found->second;
  };
  Identity both = mine;
  both.insert(theirs.begin(), theirs.end());
  std::vector<std::string> differences;
  for (const auto& [what, any] : both) {
    if (value(mine, what) == value(theirs, what)) continue;
    differences.push_back(fmt::format("{} has {} on rank {} and {} on rank {}", what,
                                      value(mine, what), my_rank, value(theirs, what), their_rank));
  }
  if (differences.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(differences, ", "));
}

}  // namespace

Rendezvous::Rendezvous(const Membership& self, milliseconds timeout)
    : self_(self), timeout_(timeout) {
  store_ = c10::make_intrusive<c10d::PrefixStore>("tally/" + self.run_id, connect(self, timeout));
  store_->setTimeout(timeout);
  wait_for_all();
}

Rendezvous Rendezvous::alone() {
  Rendezvous result;
  result.timeout_ = std::chrono::minutes(5);
  result.store_ = c10::make_intrusive<c10d::HashStore>();
  return result;
}

void Rendezvous::wait_for_all() const {
  store_->set(presence_key(self_.rank), std::vector<uint8_t>{1});
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  std::vector<std::string> keys;
  for (int64_t rank = 0; rank < self_.world; ++rank) keys.push_back(presence_key(rank));
  try {
    while (!store_->check(keys)) {
      if (std::chrono::steady_clock::now() >= deadline) break;
      std::this_thread::sleep_for(milliseconds(20));
    }
    std::vector<int64_t> missing;
    for (int64_t rank = 0; rank < self_.world; ++rank) {
      if (!store_->check({presence_key(rank)})) missing.push_back(rank);
    }
    if (missing.empty()) return;
    throw RankError(
        fmt::format("rank {} waited {:g} s (run.timeout) for all {} ranks, and rank {} never came; "
                    "start the missing, or lower the number of ranks",
                    self_.rank, seconds(timeout_), self_.world, fmt::join(missing, ", ")));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw RankError(
        fmt::format("rank {} lost the store at {}:{} while waiting for the other ranks: {}",
                    self_.rank, self_.address, self_.port, process::first_line(error)));
  }
}

Identity Rendezvous::identity_of(int64_t rank) const {
  try {
    return nlohmann::json::parse(text_of(store_->get(identity_key(rank)))).get<Identity>();
  } catch (const std::exception& error) {
    throw RankError(
        fmt::format("rank {} waited for rank {} to say what it runs, and it never did: {}. Check "
                    "that rank's log",
                    self_.rank, rank, process::first_line(error)));
  }
}

void Rendezvous::require_equal(const Identity& identity) const {
  store_->set(identity_key(self_.rank), bytes_of(nlohmann::json(identity).dump()));
  std::optional<std::string> difference;
  for (int64_t rank = 0; rank < self_.world && !difference; ++rank)
    difference = difference_of(identity, self_.rank, identity_of(rank), rank);
  store_->set(compared_key(self_.rank), std::vector<uint8_t>{1});
  if (serves_the_store()) wait_until_all_compared();
  if (difference) {
    throw ConfigError(
        fmt::format("ranks do not run the same job: {}; start every rank with the same recipe, "
                    "options and plugin files",
                    *difference));
  }
}

void Rendezvous::wait_until_all_compared() const {
  std::vector<std::string> keys;
  for (int64_t rank = 0; rank < self_.world; ++rank) keys.push_back(compared_key(rank));
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  while (!store_->check(keys) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(20));
}

}  // namespace tally::distributed
