#include "plugin/hook_factory.h"

#include "plugin/hook_loader.h"

namespace tally::plugin {

HookFactory::HookFactory(std::vector<std::filesystem::path> folders, int64_t seed)
    : loader_(std::make_shared<HookLoader>(std::move(folders), seed)) {}

HookFactory::~HookFactory() = default;

template <class T>
Hooked<T> HookFactory::create(const recipe::Section& section) {
  Made<T> made = loader_->make<T>(section);
  return Hooked<T>(std::move(made.hook), std::move(made.identity), std::move(made.context));
}

template Hooked<Task> HookFactory::create(const recipe::Section&);
template Hooked<Sampler> HookFactory::create(const recipe::Section&);
template Hooked<LossReducer> HookFactory::create(const recipe::Section&);
template Hooked<SyncPolicy> HookFactory::create(const recipe::Section&);
template Hooked<StateProvider> HookFactory::create(const recipe::Section&);

std::vector<LoadedPlugin> HookFactory::plugins() const { return loader_->plugins(); }

}  // namespace tally::plugin
