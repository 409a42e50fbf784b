#pragma once

#include <array>
#include <cstdint>
#include <vector>

/// `random.Random` of CPython 3.11 and 3.12, bit for bit, as far as sampling needs it. Sources:
/// Modules/_randommodule.c (seeding, getrandbits) and Lib/random.py (randbelow, sample).
class CPythonRandom {
 public:
  /// Words of the Mersenne twister, then the index of the next one: random.getstate()[1].
  static constexpr int64_t kStateSize = 625;
  using State = std::array<uint32_t, kStateSize>;

  /// `random.Random(n)` for an int n with |n| = `magnitude`: CPython drops the sign.
  explicit CPythonRandom(uint64_t magnitude);

  /// 0 <= result < 2^bits, for bits in [0, 64].
  uint64_t getrandbits(int bits);

  /// 0 <= result < bound, for bound >= 1.
  uint64_t randbelow(uint64_t bound);

  /// `sample(population, count)`: without replacement, in the order of selection. Throws
  /// std::invalid_argument when count exceeds the population.
  std::vector<int64_t> sample(const std::vector<int64_t>& population, uint64_t count);

  const State& state() const { return state_; }

  /// Throws std::invalid_argument for what no generator can hold: an index outside [0, 624], or
  /// words from which the twister gives zeros for ever.
  void set_state(const State& state);

 private:
  uint32_t next_word();
  void refill();

  State state_;
};
