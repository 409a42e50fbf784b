#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace c10d {
class Store;
}

namespace tally::distributed {

/// The store of a run, served by this process as long as the store is held, and a client of it.
/// Port 0: the system picks one. Throws std::exception with the system's reason.
c10::intrusive_ptr<c10d::Store> serve_store(const std::string& address, uint16_t port,
                                            std::chrono::milliseconds timeout);

/// A store server for ranks on this host, on a port that the system picks; the launcher owns it.
class StoreServer {
 public:
  explicit StoreServer(std::chrono::milliseconds timeout);
  ~StoreServer();
  uint16_t port() const;

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace tally::distributed
