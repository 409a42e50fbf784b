#include "distributed/store_server.h"

#include "distributed/membership.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace tally::distributed {
namespace {

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

}  // namespace

c10::intrusive_ptr<c10d::Store> serve_store(const std::string& address, uint16_t port,
                                            std::chrono::milliseconds timeout) {
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

StoreServer::StoreServer(std::chrono::milliseconds timeout)
    : store_(serve_store("127.0.0.1", 0, timeout)) {}

StoreServer::~StoreServer() = default;

uint16_t StoreServer::port() const { return static_cast<c10d::TCPStore&>(*store_).getPort(); }

}  // namespace tally::distributed
