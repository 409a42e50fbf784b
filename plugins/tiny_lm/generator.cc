#include "generator.h"

#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace tiny_lm {
namespace {

constexpr int64_t kShortest = 16;

/// [0, bound), for a small bound: the excess of the low values is below 2^-50.
uint64_t draw(std::mt19937_64& engine, uint64_t bound) { return engine() % bound; }

double draw_unit(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

std::array<int8_t, kVocabulary> draw_permutation(std::mt19937_64& engine) {
  std::array<int8_t, kVocabulary> permutation;
  std::iota(permutation.begin(), permutation.end(), int8_t{0});
  for (size_t i = permutation.size() - 1; i > 0; --i) {
    std::swap(permutation[i], permutation[draw(engine, i + 1)]);
  }
  return permutation;
}

}  // namespace

Rule::Rule(uint64_t seed, double noise)
    : seed_(seed), noise_(noise), last_share_((1 - noise) * 2 / 3), before_share_((1 - noise) / 3) {
  std::mt19937_64 engine(seed_);
  last_ = draw_permutation(engine);
  before_ = draw_permutation(engine);
}

std::array<double, kVocabulary> Rule::next(int64_t before, int64_t last) const {
  std::array<double, kVocabulary> result;
  result.fill(noise_ / static_cast<double>(kVocabulary));
  result[static_cast<size_t>(last_[static_cast<size_t>(last)])] += last_share_;
  result[static_cast<size_t>(before_[static_cast<size_t>(before)])] += before_share_;
  return result;
}

double Rule::entropy(int64_t before, int64_t last) const {
  double sum = 0;
  for (const double p : next(before, last)) {
    if (p > 0) sum -= p * std::log(p);
  }
  return sum;
}

double Rule::first_entropy() { return std::log(static_cast<double>(kVocabulary)); }

Dataset Rule::dataset() const {
  // A stream of its own, so that the sequences do not depend on what the permutations took.
  std::mt19937_64 engine(seed_ ^ 0x9e3779b97f4a7c15U);
  const auto sequence = [&](size_t length) {
    std::vector<int8_t> tokens;
    while (tokens.size() < length) {
      const double u = draw_unit(engine);
      const size_t drawn = tokens.size();
      if (drawn >= 2 && u < last_share_) {
        tokens.push_back(last_[static_cast<size_t>(tokens[drawn - 1])]);
      } else if (drawn >= 2 && u < last_share_ + before_share_) {
        tokens.push_back(before_[static_cast<size_t>(tokens[drawn - 2])]);
      } else {
        tokens.push_back(static_cast<int8_t>(draw(engine, kVocabulary)));
      }
    }
    return tokens;
  };

  Dataset dataset;
  for (const auto& [name, size] : {std::pair{"train", 1024}, {"validation", 128}, {"test", 256}}) {
    Split& split = dataset[name];
    for (int i = 0; i < size; ++i) {
      const size_t length = static_cast<size_t>(kShortest) +
                            draw(engine, static_cast<uint64_t>(kLongest - kShortest + 1));
      const std::vector<int8_t> tokens = sequence(length + 1);
      const std::span all(tokens);
      split.add(all.first(length), all.last(length));
    }
  }
  return dataset;
}

}  // namespace tiny_lm
