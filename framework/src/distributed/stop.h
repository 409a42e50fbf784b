#pragma once

#include <compare>
#include <cstdint>

namespace tally::distributed {

/// Why a run ends before its last window, if it does.
struct Stop {
  /// In the order in which they count, when ranks stop for different reasons at once.
  enum class Reason : int64_t {
    kNone,
    kFailedSave,  ///< A checkpoint failed that the run must not go on without.
    kSignal,
  };
  Reason reason = Reason::kNone;
  int64_t signal = 0;  ///< With kSignal; else 0.

  /// 0 is no stop.
  static Stop by_signal(int64_t signal) {
    return signal == 0 ? Stop{} : Stop{Reason::kSignal, signal};
  }
  static Stop by_failed_save() { return {Reason::kFailedSave, 0}; }

  bool requested() const { return reason != Reason::kNone; }
  auto operator<=>(const Stop&) const = default;
};

/// What two ranks conclude: the reason that counts more, and the smaller of two signals.
inline Stop agreed(const Stop& one, const Stop& other) {
  if (!one.requested()) return other;
  if (!other.requested()) return one;
  return one < other ? one : other;
}

}  // namespace tally::distributed
