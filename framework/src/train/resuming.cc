#include "train/resuming.h"

#include "checkpoint/data_lock.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace tally::train {
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

void copy_by_name(const std::vector<NamedTensor>& saved, const std::vector<NamedTensor>& targets,
                  const std::string& what) {
  const torch::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> by_name;
  for (const NamedTensor& tensor : saved) by_name.emplace(tensor.name, tensor.tensor);
  for (const NamedTensor& target : targets) {
    const auto found = by_name.find(target.name);
    if (found == by_name.end())
      throw DataError(fmt::format("{} of the checkpoint has no '{}'; it is of another model", what,
                                  target.name));
    if (found->second.sizes() != target.tensor.sizes() ||
        found->second.dtype() != target.tensor.dtype()) {
      throw DataError(fmt::format(
          "{} of the checkpoint has another shape or dtype of '{}'; it is of another model", what,
          target.name));
    }
    target.tensor.detach().copy_(found->second);
    by_name.erase(found);
  }
  if (!by_name.empty()) {
    throw DataError(fmt::format(
        "{} of the checkpoint has '{}', which this run does not know; it is of another model", what,
        by_name.begin()->first));
  }
}

/// Rank files of the checkpoint, each read once.
class RankStates {
 public:
  explicit RankStates(const CheckpointReader& reader) : reader_(reader) {}
  const checkpoint::StateBundle& of(int64_t rank) {
    const auto found = bundles_.find(rank);
    if (found != bundles_.end()) return found->second;
    return bundles_.emplace(rank, reader_.rank_state(rank)).first->second;
  }

 private:
  const CheckpointReader& reader_;
  std::map<int64_t, checkpoint::StateBundle> bundles_;
};

void require_same_providers(const Job& job, RankStates& states) {
  std::set<std::string> ours;
  for (const auto& provider : job.providers) {
    ours.insert(provider.call([](const StateProvider& hook) { return hook.state_id(); }));
  }
  const std::set<std::string>& saved = states.of(0).state_ids();
  if (ours == saved) return;
  throw DataError(
      fmt::format("the checkpoint holds the states {}, but the recipe provides {}; resume with the "
                  "same [[state]] entries and plugin "
                  "revisions",
                  fmt::join(saved, ", "), fmt::join(ours, ", ")));
}

void load_states(RankSession& session, Trainer& trainer, const CheckpointReader& reader) {
  RankStates states(reader);
  require_same_providers(session.job(), states);
  for (const auto& provider : session.job().providers) {
    provider.call([&](const StateProvider& hook) {
      int64_t source = 0;
      if (hook.scope() == StateScope::kRank) {
        if (reader.world() != session.world() && !session.job().settings.keyed_rng) {
          throw DataError(
              fmt::format("the state '{}' belongs to the {} ranks of the checkpoint and cannot be "
                          "given to {}; resume with {} ranks, or "
                          "train with rng = \"keyed\" from the start",
                          hook.state_id(), reader.world(), session.world(), reader.world()));
        }
        source = session.rank() % reader.world();
      }
      hook.load(trainer.state(), *states.of(source).reader(hook.state_id()));
    });
  }
}

}  // namespace

std::vector<std::string> differences(const Job& job, const std::string& data_lock,
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

std::optional<std::filesystem::path> find_checkpoint(const Job& job, const std::string& data_lock,
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

void restore(RankSession& session, Trainer& trainer, const CheckpointReader& reader) {
  std::vector<NamedTensor> model = session.parameters().named();
  for (NamedTensor& buffer : session.job().task.call([](Task& task) { return task.buffers(); }))
    model.push_back(buffer);
  copy_by_name(reader.model(), model, "the model");
  copy_by_name(reader.optimizer(), trainer.optimizer().state(), "the optimizer");
  trainer.state().resumed(reader.window());
  load_states(session, trainer, reader);
  if (trainer.state().windows() != reader.window()) {
    throw DataError(
        fmt::format("{} is of window {}, but its sampler's state is of window {}; one of its files "
                    "is of another step",
                    reader.path().string(), reader.window(), trainer.state().windows()));
  }
  session.require_equal_digest(digest_of(model), "the restored model");
}

}  // namespace tally::train
