#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace tally {

class Config;
class LossReducer;
class Sampler;
class SyncPolicy;

enum class LogLevel { kInfo, kWarning };

/// What the host gives a hook at its creation. Owned by the host and valid as long as the hook
/// lives; a hook may keep the reference.
class Context {
 public:
  virtual ~Context() = default;

  /// The hook's own section of the resolved recipe.
  virtual const Config& config() const = 0;

  /// The host's section `[window]`, which every sampler shares: the integers `shards`,
  /// `accumulation` (microbatches of one shard) and `batch_size` (examples of one microbatch), all
  /// there and at least 1. Swapping the sampler leaves them where they are. Use its reject() when
  /// the data cannot fill such a window.
  virtual const Config& window() const = 0;

  /// `seed` of the recipe, the same on every rank.
  virtual int64_t seed() const = 0;

  /// Seed of a random stream of the hook's own, a function of (recipe's seed, hook's section,
  /// purpose, index) alone: the same on every rank, whatever anybody else draws. [any thread]
  virtual uint64_t stream_seed(std::string_view purpose, int64_t index) const = 0;

  /// One line in the rank's log. [any thread]
  virtual void log(LogLevel level, std::string_view message) const = 0;

  /// A hook inside this one, from the table `key` of the hook's section (`[sampler.inner]` for key
  /// "inner"). Owned by the caller. Throws ConfigError when the table is absent, PluginError when
  /// its plugin cannot be loaded. [constructor's thread]
  virtual std::unique_ptr<Sampler> create_sampler(std::string_view key) = 0;
  virtual std::unique_ptr<LossReducer> create_loss_reducer(std::string_view key) = 0;
  virtual std::unique_ptr<SyncPolicy> create_sync_policy(std::string_view key) = 0;
};

}  // namespace tally
