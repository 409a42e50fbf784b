#include "run/conditions.h"

#include <torch/version.h>
#include <nlohmann/json.hpp>

#include <set>

namespace tally::run {

using nlohmann::json;

bool decides_windows(const std::string& key) {
  static const std::set<std::string> kOthers{"train.updates", "train.stop_at", "run.timeout",
                                             "run.ranks"};
  return !kOthers.contains(key) && !key.starts_with("checkpoint.");
}

std::map<std::string, std::string> values_of(const recipe::Recipe& recipe) {
  std::map<std::string, std::string> values;
  for (const json& entry : json::parse(recipe.with_origins_json()))
    values.emplace(entry.at("key").get<std::string>(), entry.at("value").dump());
  return values;
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
