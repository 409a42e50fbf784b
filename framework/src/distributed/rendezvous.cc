#include "distributed/rendezvous.h"

#include "log/log.h"
#include "process/ending.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>

namespace tally::distributed {
namespace {

using std::chrono::milliseconds;

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

double seconds(milliseconds time) { return static_cast<double>(time.count()) * 1e-3; }

/// A listening socket on 127.0.0.1, so that the store is not seen from other hosts; by itself it
/// would listen on every interface.
int listen_on_loopback(uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int reuse = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  constexpr int kBacklog = 1024;
  if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) != 0 ||
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket, kBacklog) != 0) {
    const std::string reason = std::strerror(errno);
    if (socket >= 0) ::close(socket);
    throw std::runtime_error(reason);
  }
  return socket;
}

uint16_t port_of(int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error(std::strerror(errno));
  return ntohs(address.sin_port);
}

/// Port 0: the system picks one.
c10::intrusive_ptr<c10d::TCPStore> serve(const std::string& address, uint16_t port,
                                         milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = true;
  options.waitWorkers = false;
  options.timeout = timeout;
  if (is_loopback(address)) {
    options.masterListenFd = listen_on_loopback(port);
    options.port = port_of(*options.masterListenFd);
  }
  return c10::make_intrusive<c10d::TCPStore>(address, options);
}

c10::intrusive_ptr<c10d::Store> connect(const Membership& self, milliseconds timeout) {
  const bool serves = self.rank == 0 && !self.external_store;
  try {
    if (serves) return serve(self.address, self.port, timeout);
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

StoreServer::StoreServer(milliseconds timeout) : store_(serve("127.0.0.1", 0, timeout)) {}

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
      log::warning(fmt::format("the board is no longer shared: {}", process::first_line(error)));
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
