#include "save/find_checkpoint.h"

#include "checkpoint/data_lock.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace tally::save {
namespace {

using checkpoint::CheckpointReader;
using nlohmann::json;

bool is_ignored(const std::string& key, const std::vector<std::string>& allowed) {
  static const std::set<std::string> kIgnored{"train.updates", "train.stop_at", "run.timeout",
                                              "run.ranks"};
  return kIgnored.contains(key) || key.starts_with("checkpoint.") ||
         std::find(allowed.begin(), allowed.end(), key) != allowed.end();
}

std::map<std::string, std::string> values_of(const recipe::Recipe& recipe) {
  std::map<std::string, std::string> values;
  for (const json& entry : json::parse(recipe.with_origins_json())) {
    values.emplace(entry.at("key").get<std::string>(), entry.at("value").dump());
  }
  return values;
}

}  // namespace

std::vector<std::string> differences(const run::Job& job, const std::string& data_lock,
                                     const CheckpointReader& reader,
                                     const std::vector<std::string>& allowed) {
  std::vector<std::string> result;
  recipe::Sources sources;
  sources.recipe = reader.path() / "recipe.toml";
  const auto saved = values_of(recipe::Recipe::load(sources));
  const auto ours = values_of(job.recipe);
  std::set<std::string> keys;
  for (const auto& [key, value] : saved) keys.insert(key);
  for (const auto& [key, value] : ours) keys.insert(key);
  const auto text = [](const std::map<std::string, std::string>& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string("absent") : found->second;
  };
  for (const std::string& key : keys) {
    if (is_ignored(key, allowed) || text(saved, key) == text(ours, key)) continue;
    result.push_back(fmt::format("{} is {} in the checkpoint and {} here", key, text(saved, key),
                                 text(ours, key)));
  }
  const auto their_data = checkpoint::DataLock::from_json(
      reader.data_lock(), (reader.path() / "data.lock.json").string());
  const auto our_data = checkpoint::DataLock::from_json(data_lock, "data.lock.json");
  for (std::string& sentence : their_data.differences(our_data))
    result.push_back(std::move(sentence));
  return result;
}

std::optional<std::filesystem::path> find_checkpoint(const run::Job& job,
                                                     const std::string& data_lock,
                                                     const std::string& wish,
                                                     const std::vector<std::string>& allowed,
                                                     std::vector<std::string>& remarks) {
  if (wish != "latest") {
    const auto found = differences(job, data_lock, CheckpointReader::open(wish), allowed);
    if (found.empty()) return wish;
    throw DataError(
        fmt::format("{} is of another run: {}. Resume with the recipe and data that it was made "
                    "with, or allow a key with "
                    "--allow KEY",
                    wish, fmt::join(found, "; ")));
  }
  bool all_damaged = true;
  const auto steps = checkpoint::list_steps(job.settings.checkpoint_folder);
  for (const std::filesystem::path& step : steps) {
    try {
      const auto found = differences(job, data_lock, CheckpointReader::open(step), allowed);
      if (found.empty()) return step;
      remarks.push_back(fmt::format("{} is passed over: it is of another run: {}", step.string(),
                                    fmt::join(found, "; ")));
      all_damaged = false;
    } catch (const DataError& error) {
      remarks.push_back(fmt::format("{} is passed over: {}", step.string(), error.what()));
    }
  }
  if (!steps.empty() && all_damaged) {
    throw DataError(
        fmt::format("every checkpoint in {} is damaged: {}. Restore one from a copy, or train anew "
                    "without --resume",
                    job.settings.checkpoint_folder.string(), fmt::join(remarks, "; ")));
  }
  return std::nullopt;
}

}  // namespace tally::save
