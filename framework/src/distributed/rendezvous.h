#pragma once

#include "distributed/membership.h"

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <map>
#include <string>

namespace c10d {
class Store;
}

namespace tally::distributed {

/// What every rank must have in common before any group exists: name of a thing ("recipe", "plugin
/// token_mean") to its digest.
using Identity = std::map<std::string, std::string>;

/// A store that all ranks have joined.
class Rendezvous {
 public:
  /// Connects, and waits until every rank is there. Throws RankError naming port and remedy when
  /// the port is in use, the address and the wait when the store does not answer, and the ranks
  /// that never came; each after at most `timeout`.
  Rendezvous(const Membership& self, std::chrono::milliseconds timeout);
  /// A world of one without any network.
  static Rendezvous alone();

  /// Throws ConfigError on every rank when ranks differ, naming both ranks and what differs;
  /// RankError when a rank leaves before it has said what it runs. [every rank]
  void require_equal(const Identity& identity) const;

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }
  const Membership& self() const { return self_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  Rendezvous() = default;
  void wait_for_all() const;
  Identity identity_of(int64_t rank) const;
  bool serves_the_store() const { return self_.rank == 0 && !self_.external_store; }
  /// The store goes with the rank that serves it, which may be about to fail: the others must have
  /// read before. A rank that never compares is found by whoever needs it next.
  void wait_until_all_compared() const;

  Membership self_;
  std::chrono::milliseconds timeout_{0};
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace tally::distributed
