#include "distributed/board_publisher.h"

#include "distributed/rendezvous.h"
#include "log/log.h"
#include "process/ending.h"

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <condition_variable>
#include <cstring>
#include <mutex>

namespace tally::distributed {

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
