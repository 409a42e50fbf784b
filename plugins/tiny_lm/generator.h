#pragma once

#include "dataset.h"

#include <array>
#include <cstdint>

namespace tiny_lm {

/// The rule that the data follows. The first two tokens of a sequence are uniform; then, with a
/// the last token and b the one before it, the next token is
///
///     last[a]     with probability (1 - noise) * 2/3,
///     before[b]   with probability (1 - noise) * 1/3,
///     uniform     with probability noise,
///
/// with two permutations `last` and `before` drawn from the seed. A permutation of uniform tokens
/// is uniform, so every token is equally frequent at every position, and guessing is right one time
/// in four. The same bits on every machine: raw 64-bit words of std::mt19937_64 and IEEE
/// comparisons, no distribution of the standard library.
class Rule {
 public:
  /// `noise` in [0, 1].
  Rule(uint64_t seed, double noise);

  /// P(next | before, last).
  std::array<double, kVocabulary> next(int64_t before, int64_t last) const;

  /// Entropy of the next token, in nats: what no model can beat on average.
  double entropy(int64_t before, int64_t last) const;

  /// The same of the second token, of which only the first is seen: log 4, in nats.
  static double first_entropy();

  /// 1,024 train, 128 validation and 256 test sequences of 16 to 128 tokens (uniform). One token
  /// more than a sequence is long is drawn, so that every position has its next token as label.
  Dataset dataset() const;

 private:
  uint64_t seed_;
  double noise_;
  double last_share_;
  double before_share_;
  std::array<int8_t, kVocabulary> last_;
  std::array<int8_t, kVocabulary> before_;
};

}  // namespace tiny_lm
