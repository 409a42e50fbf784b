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
  Settings settings = read_settings(recipe);
  const OptimizerOptions optimizer = read_optimizer(recipe.section("optimizer"));
  auto factory = std::make_unique<plugin::HookFactory>(plugin_folders, settings.seed);
  auto task = factory->create<Task>(recipe.section("task"));
  auto sampler = factory->create<Sampler>(recipe.section("sampler"));
  auto reducer = factory->create<LossReducer>(recipe.section("loss_reducer"));
  auto policy = factory->create<SyncPolicy>(recipe.section("sync_policy"));
  auto providers = create_providers(recipe, *factory);
  return Job{recipe,
             std::move(settings),
             optimizer,
             std::move(factory),
             std::move(task),
             std::move(sampler),
             std::move(reducer),
             std::move(policy),
             std::move(providers)};
}

}  // namespace

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
