#include "distributed/rendezvous.h"

#include "distributed/failure.h"
#include "log/log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <condition_variable>
#include <cstring>
#include <mutex>

namespace tally::distributed {
namespace {

using std::chrono::milliseconds;

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

double seconds(milliseconds time) { return static_cast<double>(time.count()) * 1e-3; }

c10::intrusive_ptr<c10d::Store> connect(const Membership& self, milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = self.port;
  options.isServer = self.rank == 0 && !self.external_store;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    return c10::make_intrusive<c10d::TCPStore>(self.address, options);
  } catch (const std::exception& error) {
    if (options.isServer) {
      throw RankError(fmt::format(
          "rank 0 cannot serve the store on {}:{}: {}. The port is in use or not allowed; "
          "set MASTER_PORT to a free one",
          self.address, self.port, first_line(error)));
    }
    throw RankError(
        fmt::format("rank {} could not reach the store at {}:{} within {:g} s: {}. Check that rank "
                    "0 runs, and that "
                    "MASTER_ADDR and MASTER_PORT are the same everywhere",
                    self.rank, self.address, self.port, seconds(timeout), first_line(error)));
  }
}

std::string presence_key(int64_t rank) { return fmt::format("present/{}", rank); }

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
                    self_.rank, self_.address, self_.port, first_line(error)));
  }
}

void Rendezvous::require_equal(const Identity& identity) const {
  store_->set(fmt::format("identity/{}", self_.rank), bytes_of(nlohmann::json(identity).dump()));
  for (int64_t rank = 0; rank < self_.world; ++rank) {
    const auto other = nlohmann::json::parse(text_of(store_->get(fmt::format("identity/{}", rank))))
                           .get<Identity>();
    for (const auto& [what, digest] : identity) {
      const auto found = other.find(what);
      if (found != other.end() && found->second == digest) continue;
      throw ConfigError(fmt::format(
          "ranks do not run the same job: {} has {} on rank {} and {} on rank {}; start every rank "
          "with the "
          "same recipe, options and plugin files",
          what, digest, self_.rank, found == other.end() ? "nothing" : found->second, rank));
    }
  }
}

StoreServer::StoreServer(milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  options.timeout = timeout;
  store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

StoreServer::~StoreServer() = default;

uint16_t StoreServer::port() const { return static_cast<c10d::TCPStore&>(*store_).getPort(); }

BoardPublisher::BoardPublisher(const Rendezvous& rendezvous, std::shared_ptr<Board> board)
    : rank_(rendezvous.self().rank),
      board_(std::move(board)),
      store_(c10::make_intrusive<c10d::PrefixStore>("board", rendezvous.store()->clone())) {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    try {
      while (!stop.stop_requested()) {
        publish();
        wake.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
      }
    } catch (const std::exception& error) {
      log::warning(fmt::format("the board is no longer shared: {}", first_line(error)));
    }
  });
}

BoardPublisher::~BoardPublisher() = default;

void BoardPublisher::publish() {
  const BoardRecord record = board_->read(rank_);
  std::vector<uint8_t> bytes(sizeof record);
  std::memcpy(bytes.data(), &record, sizeof record);
  store_->set(std::to_string(rank_), bytes);
}

void BoardPublisher::collect() {
  try {
    publish();
    for (int64_t rank = 0; rank < board_->world(); ++rank) {
      if (rank == rank_ || !store_->check({std::to_string(rank)})) continue;
      const std::vector<uint8_t> bytes = store_->get(std::to_string(rank));
      BoardRecord record;
      if (bytes.size() != sizeof record) continue;
      std::memcpy(&record, bytes.data(), sizeof record);
      board_->write(rank, record);
    }
  } catch (const std::exception&) {
    // The store went with its rank: what was collected so far is what there is.
  }
}

}  // namespace tally::distributed
