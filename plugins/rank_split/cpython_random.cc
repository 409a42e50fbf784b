#include "cpython_random.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <unordered_set>

namespace {

constexpr uint32_t kWords = 624;
constexpr uint32_t kShift = 397;

/// Population size up to which CPython copies the population instead of remembering what it took.
uint64_t list_limit(uint64_t count) {
  uint64_t limit = 21;
  if (count > 5) {
    // 4 ** ceil(log(3 * count, 4)). 3 * count is never a power of 4, so integers give what the
    // rounded logarithm does.
    uint64_t power = 1;
    while (power < 3 * count) power *= 4;
    limit += power;
  }
  return limit;
}

}  // namespace

CPythonRandom::CPythonRandom(uint64_t magnitude) {
  std::vector<uint32_t> key{static_cast<uint32_t>(magnitude)};
  if (magnitude >> 32 != 0) key.push_back(static_cast<uint32_t>(magnitude >> 32));

  state_[0] = 19650218;
  for (uint32_t i = 1; i < kWords; ++i) {
    state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  uint32_t i = 1;
  const auto advance = [&] {
    if (++i == kWords) {
      state_[0] = state_[kWords - 1];
      i = 1;
    }
  };
  uint32_t j = 0;
  for (uint32_t k = 0; k < kWords; ++k) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525U)) + key[j] + j;
    advance();
    if (++j == key.size()) j = 0;
  }
  for (uint32_t k = 1; k < kWords; ++k) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941U)) - i;
    advance();
  }
  state_[0] = 0x80000000U;
  state_[kWords] = kWords;
}

void CPythonRandom::refill() {
  for (uint32_t i = 0; i < kWords; ++i) {
    const uint32_t mixed = (state_[i] & 0x80000000U) | (state_[(i + 1) % kWords] & 0x7fffffffU);
    state_[i] = state_[(i + kShift) % kWords] ^ (mixed >> 1) ^ ((mixed & 1U) * 0x9908b0dfU);
  }
  state_[kWords] = 0;
}

uint32_t CPythonRandom::next_word() {
  if (state_[kWords] >= kWords) refill();
  uint32_t y = state_[state_[kWords]++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680U;
  y ^= (y << 15) & 0xefc60000U;
  return y ^ (y >> 18);
}

uint64_t CPythonRandom::getrandbits(int bits) {
  if (bits <= 0) return 0;
  if (bits <= 32) return next_word() >> (32 - bits);
  const uint64_t low = next_word();
  const uint64_t high = next_word() >> (64 - bits);
  return high << 32 | low;
}

uint64_t CPythonRandom::randbelow(uint64_t bound) {
  const int bits = static_cast<int>(std::bit_width(bound));
  uint64_t value = getrandbits(bits);
  while (value >= bound) value = getrandbits(bits);
  return value;
}

std::vector<int64_t> CPythonRandom::sample(const std::vector<int64_t>& population, uint64_t count) {
  const uint64_t size = population.size();
  if (count > size) {
    throw std::invalid_argument("a sample of " + std::to_string(count) + " from a population of " +
                                std::to_string(size));
  }
  std::vector<int64_t> result;
  result.reserve(count);
  if (size <= list_limit(count)) {
    std::vector<int64_t> pool = population;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t j = randbelow(size - i);
      result.push_back(pool[j]);
      pool[j] = pool[size - i - 1];
    }
  } else {
    std::unordered_set<uint64_t> taken;
    while (result.size() < count) {
      const uint64_t j = randbelow(size);
      if (taken.insert(j).second) result.push_back(population[j]);
    }
  }
  return result;
}

void CPythonRandom::set_state(const State& state) {
  if (state[kWords] > kWords) {
    throw std::invalid_argument("index " + std::to_string(state[kWords]) +
                                " of the generator lies outside [0, 624]");
  }
  // Only the top bit of the first word takes part in the recurrence.
  const bool other_words_zero =
      std::all_of(state.begin() + 1, state.end() - 1, [](uint32_t word) { return word == 0; });
  if ((state[0] & 0x80000000U) == 0 && other_words_zero) {
    throw std::invalid_argument("the generator's words are all zero");
  }
  state_ = state;
}
