#include "plugin/host_context.h"

#include "digest/sha256.h"
#include "log/log.h"
#include "plugin/hook_loader.h"

#include <bit>
#include <cstring>

namespace tally::plugin {

HostContext::HostContext(recipe::Section section, HookIdentity identity,
                         std::shared_ptr<HookLoader> loader)
    : section_(std::move(section)),
      window_(section_.of_root("window")),
      identity_(std::move(identity)),
      loader_(std::move(loader)) {}

int64_t HostContext::seed() const { return loader_->seed(); }

/// The first eight bytes, little-endian, of a SHA-256. Each text goes in behind its length, so that
/// no two triples of path, purpose and index feed it the same bytes.
uint64_t HostContext::stream_seed(std::string_view purpose, int64_t index) const {
  static_assert(std::endian::native == std::endian::little);
  Sha256 hash;
  hash.update(seed());
  hash.update(static_cast<int64_t>(section_.path().size())).update(section_.path());
  hash.update(static_cast<int64_t>(purpose.size())).update(purpose);
  hash.update(index);
  const Digest digest = hash.finish();
  uint64_t value;
  std::memcpy(&value, digest.bytes().data(), sizeof value);
  return value;
}

void HostContext::log(LogLevel level, std::string_view message) const {
  const std::string line = identity_.kind + " \"" + identity_.hook + "\": " + std::string(message);
  if (level == LogLevel::kWarning) {
    log::warning(line);
  } else {
    log::info(line);
  }
}

template <class T>
std::unique_ptr<T> HostContext::create(std::string_view key) {
  Made<T> made = loader_->make<T>(section_.child(key));
  inner_.push_back(std::move(made.context));
  return std::move(made.hook);
}

std::unique_ptr<Sampler> HostContext::create_sampler(std::string_view key) {
  return create<Sampler>(key);
}

std::unique_ptr<LossReducer> HostContext::create_loss_reducer(std::string_view key) {
  return create<LossReducer>(key);
}

std::unique_ptr<SyncPolicy> HostContext::create_sync_policy(std::string_view key) {
  return create<SyncPolicy>(key);
}

}  // namespace tally::plugin
