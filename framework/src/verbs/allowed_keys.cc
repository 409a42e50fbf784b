#include "verbs/allowed_keys.h"

#include "checkpoint/checkpoint.h"
#include "recipe/nearest.h"
#include "report/text.h"
#include "run/conditions.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <set>

namespace tally::verbs {
namespace {

using Keys = std::set<std::string, std::less<>>;

void add_keys(Keys& keys, const recipe::Recipe& recipe) {
  for (const auto& [key, value] : run::values_of(recipe)) keys.insert(key);
}

std::vector<std::filesystem::path> candidates(const run::Job& job, const save::Wish& wish) {
  if (wish.resume.empty()) return {};
  if (wish.resume != "latest") return {wish.resume};
  return checkpoint::list_steps(job.settings.checkpoint_folder);
}

}  // namespace

void require_known_keys(const run::Job& job, const save::Wish& wish) {
  if (wish.allowed.empty()) return;
  Keys keys;
  add_keys(keys, job.recipe);
  for (const std::filesystem::path& step : candidates(job, wish)) {
    try {
      recipe::Sources sources;
      sources.recipe = step / checkpoint::kRecipeFile;
      add_keys(keys, recipe::Recipe::load(sources));
    } catch (const ConfigError&) {
      continue;  // What is wrong with the step is said when it is opened.
    }
  }
  for (const std::string& key : wish.allowed) {
    if (keys.contains(key)) continue;
    const auto near = recipe::nearest(key, keys);
    throw ConfigError(fmt::format(
        "--allow {}: neither the recipe nor a checkpoint to go on from has this key; {}",
        report::shown(key),
        near ? fmt::format("did you mean {}?", *near) : "`tally recipe show` prints the keys"));
  }
}

}  // namespace tally::verbs
