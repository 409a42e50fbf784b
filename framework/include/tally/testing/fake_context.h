#pragma once

#include <tally/context.h>
#include <tally/error.h>
#include <tally/loss_reducer.h>
#include <tally/sampler.h>
#include <tally/sync_policy.h>
#include <tally/testing/fake_config.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tally::testing {

/// The context of a hook under test. It keeps what is logged and hands out inner hooks that the
/// test has put in.
class FakeContext final : public Context {
 public:
  explicit FakeContext(FakeConfig config = {}, int64_t seed = 1)
      : config_(std::move(config)), seed_(seed) {}
  /// With the host's section `[window]`; without it, two shards of one microbatch of one example.
  FakeContext(FakeConfig config, FakeConfig window, int64_t seed = 1)
      : config_(std::move(config)), window_(std::move(window)), seed_(seed) {}

  const FakeConfig& config() const override { return config_; }
  const FakeConfig& window() const override { return window_; }
  int64_t seed() const override { return seed_; }

  /// A function of seed, purpose and index alone, as the host's; the values are other ones.
  uint64_t stream_seed(std::string_view purpose, int64_t index) const override {
    uint64_t hash = mix(static_cast<uint64_t>(seed_));
    for (const char c : purpose) hash = mix(hash ^ static_cast<unsigned char>(c));
    return mix(hash ^ static_cast<uint64_t>(index));
  }

  /// Not safe for several threads, unlike the host's.
  void log(LogLevel /*level*/, std::string_view message) const override {
    lines_.emplace_back(message);
  }

  std::unique_ptr<Sampler> create_sampler(std::string_view key) override {
    return take(samplers_, key);
  }
  std::unique_ptr<LossReducer> create_loss_reducer(std::string_view key) override {
    return take(loss_reducers_, key);
  }
  std::unique_ptr<SyncPolicy> create_sync_policy(std::string_view key) override {
    return take(sync_policies_, key);
  }

  /// What the next create_...(key) returns.
  void put(const std::string& key, std::unique_ptr<Sampler> hook) {
    samplers_[key] = std::move(hook);
  }
  void put(const std::string& key, std::unique_ptr<LossReducer> hook) {
    loss_reducers_[key] = std::move(hook);
  }
  void put(const std::string& key, std::unique_ptr<SyncPolicy> hook) {
    sync_policies_[key] = std::move(hook);
  }

  /// Everything logged so far, in order.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  template <class T>
  using Inner = std::map<std::string, std::unique_ptr<T>>;

  /// The finaliser of splitmix64 (Steele, Lea and Flood, 2014).
  static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
  }

  template <class T>
  static std::unique_ptr<T> take(Inner<T>& inner, std::string_view key) {
    auto node = inner.extract(std::string(key));
    if (node.empty()) {
      throw ConfigError("test: no inner hook \"" + std::string(key) +
                        "\"; put one into the FakeContext first");
    }
    return std::move(node.mapped());
  }

  FakeConfig config_;
  FakeConfig window_{{"shards", 2}, {"accumulation", 1}, {"batch_size", 1}};
  int64_t seed_;
  mutable std::vector<std::string> lines_;
  Inner<Sampler> samplers_;
  Inner<LossReducer> loss_reducers_;
  Inner<SyncPolicy> sync_policies_;
};

}  // namespace tally::testing
