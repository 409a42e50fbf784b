#include "run/conditions.h"

#include <torch/version.h>
#include <nlohmann/json.hpp>

#include <set>
#include <utility>

namespace tally::run {

using nlohmann::json;

bool decides_windows(const std::string& key) {
  static const std::set<std::string> kOthers{"train.updates", "train.stop_at", "run.timeout",
                                             "run.ranks"};
  return !kOthers.contains(key) && !key.starts_with("checkpoint.");
}

Values values_of(const recipe::Recipe& recipe) {
  Values values;
  for (const json& entry : json::parse(recipe.with_origins_json()))
    values.emplace(entry.at("key").get<std::string>(), entry.at("value").dump());
  return values;
}

std::vector<Difference> differences(const Values& one, const Values& other) {
  const auto value_at = [](const Values& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string("absent") : found->second;
  };
  Values all = one;
  all.insert(other.begin(), other.end());
  std::vector<Difference> found;
  for (const auto& [key, value] : all) {
    Difference difference{key, value_at(one, key), value_at(other, key)};
    if (difference.one != difference.other) found.push_back(std::move(difference));
  }
  return found;
}

Digest conditions_of(const Job& job, const std::string& data_lock) {
  json conditions{{"data", sha256(data_lock).hex()},
                  {"libtorch", TORCH_VERSION},
                  {"ranks", job.settings.ranks}};
  for (const auto& [key, value] : values_of(job.recipe))
    if (decides_windows(key)) conditions["recipe"][key] = value;
  for (const plugin::LoadedPlugin& loaded : job.factory->plugins())
    conditions["plugins"][loaded.name] = loaded.digest.hex();
  return sha256(conditions.dump());
}

}  // namespace tally::run
