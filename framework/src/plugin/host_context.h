#pragma once

#include "plugin/hooked.h"
#include "recipe/section.h"

#include <tally/context.h>
#include <tally/loss_reducer.h>
#include <tally/sampler.h>
#include <tally/sync_policy.h>

#include <memory>
#include <string_view>
#include <vector>

namespace tally::plugin {

class HookLoader;

/// The Context of one hook. It keeps the contexts of the hooks that were made through it, since
/// those live at most as long as the hook that asked for them.
class HostContext final : public Context {
 public:
  HostContext(recipe::Section section, HookIdentity identity, std::shared_ptr<HookLoader> loader);

  const Config& config() const override { return section_; }
  const Config& window() const override { return window_; }
  int64_t seed() const override;
  uint64_t stream_seed(std::string_view purpose, int64_t index) const override;
  void log(LogLevel level, std::string_view message) const override;

  std::unique_ptr<Sampler> create_sampler(std::string_view key) override;
  std::unique_ptr<LossReducer> create_loss_reducer(std::string_view key) override;
  std::unique_ptr<SyncPolicy> create_sync_policy(std::string_view key) override;

 private:
  template <class T>
  std::unique_ptr<T> create(std::string_view key);

  recipe::Section section_;
  recipe::Section window_;
  HookIdentity identity_;
  std::shared_ptr<HookLoader> loader_;
  std::vector<std::shared_ptr<Context>> inner_;
};

}  // namespace tally::plugin
