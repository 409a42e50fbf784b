#include "run/job.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <set>

namespace tally::run {
namespace {

std::vector<plugin::Hooked<StateProvider>> create_providers(const recipe::Recipe& recipe,
                                                            plugin::HookFactory& factory) {
  std::vector<plugin::Hooked<StateProvider>> providers;
  std::set<std::string> ids;
  for (const recipe::Section& section : recipe.sections("state")) {
    providers.push_back(factory.create<StateProvider>(section));
    const std::string id =
        providers.back().call([](StateProvider& hook) { return hook.state_id(); });
    if (!ids.insert(id).second) {
      throw ConfigError(fmt::format("{}: the state '{}' is provided twice; leave one [[state]] out",
                                    section.origin(), id));
    }
  }
  return providers;
}

/// Every key that host and hooks know is read then.
Job make_hooks(const recipe::Recipe& recipe,
               const std::vector<std::filesystem::path>& plugin_folders) {
  const Settings settings = read_settings(recipe);
  auto factory = std::make_unique<plugin::HookFactory>(plugin_folders, settings.seed);
  Hooks hooks{factory->create<Task>(recipe.section("task")),
              factory->create<Sampler>(recipe.section("sampler")),
              factory->create<LossReducer>(recipe.section("loss_reducer")),
              factory->create<SyncPolicy>(recipe.section("sync_policy")),
              create_providers(recipe, *factory)};
  return assemble(recipe, std::move(factory), std::move(hooks));
}

}  // namespace

Job assemble(const recipe::Recipe& recipe, std::unique_ptr<plugin::HookFactory> factory,
             Hooks hooks) {
  return Job{recipe,
             read_settings(recipe),
             read_optimizer(recipe.section("optimizer")),
             std::move(factory),
             std::move(hooks.task),
             std::move(hooks.sampler),
             std::move(hooks.reducer),
             std::move(hooks.policy),
             std::move(hooks.providers)};
}

Job assemble(const recipe::Recipe& recipe,
             const std::vector<std::filesystem::path>& plugin_folders) {
  Job job = make_hooks(recipe, plugin_folders);
  recipe.reject_unread();
  return job;
}

std::vector<std::string> unknown_sets(const recipe::Recipe& recipe,
                                      const std::vector<std::filesystem::path>& plugin_folders) {
  make_hooks(recipe, plugin_folders);
  return recipe.unread_sets();
}

}  // namespace tally::run
