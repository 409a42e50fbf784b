#include "cpython_random.h"

#include <tally/config.h>
#include <tally/error.h>
#include <tally/plugin.h>

#include <ATen/ops/empty.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

constexpr int64_t kPools = 2;

/// The most that one number of the section may be: a window's size then fits an int64.
constexpr int64_t kMaximum = 1'000'000;

/// "1 shard", "2 shards", "2 microbatches".
std::string counted(int64_t number, const std::string& noun) {
  const char* plural = noun.ends_with("h") ? "es" : "s";
  return std::to_string(number) + " " + noun + (number == 1 ? "" : plural);
}

/// |seed + 10|, which may lie outside int64 in itself.
uint64_t generator_seed(int64_t seed) {
  if (seed >= -10) return static_cast<uint64_t>(seed) + 10;
  return static_cast<uint64_t>(-(seed + 10));
}

/// Short and long examples on different shards, so that equal microbatches hold unequal numbers of
/// tokens: the case in which a mean of means is wrong.
///
/// Pool 0: examples of length <= split_length; pool 1: the longer ones; ids ascending. Shard s
/// draws from pool s % 2. For each window, pool after pool, one `sample` of CPython's
/// random.Random(seed + 10), cut in shard order into microbatches: without replacement inside a
/// window, while ids come back in later ones.
class RankSplit final : public tally::Sampler {
 public:
  explicit RankSplit(tally::Context& context)
      : window_(context.window()),
        shards_(window_.integer_in("shards", std::nullopt, 1, kMaximum)),
        accumulation_(window_.integer_in("accumulation", std::nullopt, 1, kMaximum)),
        batch_size_(window_.integer_in("batch_size", std::nullopt, 1, kMaximum)),
        split_length_(context.config().integer_in("split_length", 64, 0, INT64_MAX)),
        random_(generator_seed(context.seed())) {}

  void prepare(const tally::ExampleTable& examples) override {
    for (auto& pool : pools_) pool.clear();
    for (size_t id = 0; id < examples.lengths.size(); ++id) {
      pools_[examples.lengths[id] <= split_length_ ? 0 : 1].push_back(static_cast<int64_t>(id));
    }
    for (int64_t pool = 0; pool < kPools; ++pool) require_enough(pool);
  }

  std::optional<tally::WindowPlan> plan(int64_t window) override {
    if (started_ && window != next_window_) {
      throw std::logic_error("rank_split was asked for window " + std::to_string(window) +
                             " while window " + std::to_string(next_window_) +
                             " is next; windows are planned one after another");
    }
    tally::WindowPlan plan{window, std::vector<tally::Shard>(static_cast<size_t>(shards_))};
    for (int64_t pool = 0; pool < kPools; ++pool) {
      const std::vector<int64_t> drawn =
          random_.sample(pools_[static_cast<size_t>(pool)], static_cast<uint64_t>(demand(pool)));
      auto next = drawn.begin();
      for (int64_t shard = pool; shard < shards_; shard += kPools) {
        for (int64_t i = 0; i < accumulation_; ++i, next += batch_size_) {
          plan.shards[static_cast<size_t>(shard)].emplace_back(next, next + batch_size_);
        }
      }
    }
    started_ = true;
    next_window_ = window + 1;
    return plan;
  }

  void save_state(tally::StateWriter& writer) const override {
    at::Tensor words = at::empty({CPythonRandom::kStateSize}, at::kLong);
    std::copy(random_.state().begin(), random_.state().end(), words.mutable_data_ptr<int64_t>());
    writer.tensor("generator", words);
    writer.integer("next_window", next_window_);
  }

  void load_state(const tally::StateReader& reader) override {
    const int64_t next_window = reader.integer("next_window");
    if (next_window < 0) {
      throw tally::DataError("the state of rank_split names window " + std::to_string(next_window) +
                             " as the next one");
    }
    const CPythonRandom::State state = generator_state(reader.tensor("generator"));
    try {
      random_.set_state(state);
    } catch (const std::invalid_argument& error) {
      throw tally::DataError(std::string("the state of rank_split cannot be used: ") +
                             error.what());
    }
    next_window_ = next_window;
    started_ = true;
  }

 private:
  int64_t shards_of(int64_t pool) const { return (shards_ + kPools - 1 - pool) / kPools; }
  int64_t demand(int64_t pool) const { return accumulation_ * batch_size_ * shards_of(pool); }

  void require_enough(int64_t pool) const {
    const auto held = static_cast<int64_t>(pools_[static_cast<size_t>(pool)].size());
    if (demand(pool) <= held) return;
    const std::string lengths =
        (pool == 0 ? "at most " : "more than ") + std::to_string(split_length_);
    window_.reject("batch_size", "cannot be filled: with " + counted(accumulation_, "microbatch") +
                                     " on " + counted(shards_of(pool), "shard") +
                                     ", a window takes " + counted(demand(pool), "example") +
                                     " of length " + lengths + ", but the data has " +
                                     std::to_string(held) + "; " + remedy(pool));
  }

  /// What can still be lowered.
  std::string remedy(int64_t pool) const {
    std::string factors;
    const auto add = [&](int64_t value, const char* name) {
      if (value > 1) factors += (factors.empty() ? "lower " : " or ") + std::string(name);
    };
    add(batch_size_, "window.batch_size");
    add(accumulation_, "window.accumulation");
    add(shards_of(pool), "window.shards");
    return factors + (factors.empty() ? "" : ", ") + "change sampler.split_length, or add data";
  }

  static CPythonRandom::State generator_state(const at::Tensor& words) {
    if (words.scalar_type() != at::kLong || words.dim() != 1 ||
        words.size(0) != CPythonRandom::kStateSize) {
      throw tally::DataError("the state of rank_split is " + words.toString() + " with " +
                             std::to_string(words.numel()) +
                             " values instead of int64 with 625: it is of another sampler");
    }
    const at::Tensor contiguous = words.contiguous();
    const int64_t* values = contiguous.const_data_ptr<int64_t>();
    CPythonRandom::State state;
    for (size_t i = 0; i < state.size(); ++i) {
      if (values[i] < 0 || values[i] > UINT32_MAX) {
        throw tally::DataError("the state of rank_split holds " + std::to_string(values[i]) +
                               " where a word of 32 bits belongs");
      }
      state[i] = static_cast<uint32_t>(values[i]);
    }
    return state;
  }

  const tally::Config& window_;
  const int64_t shards_;
  const int64_t accumulation_;
  const int64_t batch_size_;
  const int64_t split_length_;
  CPythonRandom random_;
  bool started_ = false;  ///< The first window may be any: without its state a run goes on from a
                          ///< new generator.
  int64_t next_window_ = 0;
  std::array<std::vector<int64_t>, kPools> pools_;
};

}  // namespace

TALLY_PLUGIN("rank_split", "0.1.0", tally::hook<RankSplit>("rank_split"))
