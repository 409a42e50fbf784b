#pragma once

#include "distributed/board.h"

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <thread>

namespace c10d {
class Store;
}

namespace tally::distributed {

class Rendezvous;

/// Shows this rank's board record to the others through the store, once a second, where no file is
/// shared. Ends with the object.
class BoardPublisher {
 public:
  BoardPublisher(const Rendezvous& rendezvous, std::shared_ptr<Board> board);
  ~BoardPublisher();
  /// Reads the others' records into the board, as far as the store still answers.
  void collect();

 private:
  void publish();
  int64_t rank_;
  std::shared_ptr<Board> board_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::jthread thread_;
};

}  // namespace tally::distributed
