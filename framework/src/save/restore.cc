#include "save/restore.h"

#include "run/named_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>

#include <map>
#include <set>

namespace tally::save {
namespace {

using checkpoint::CheckpointReader;
using run::Job;

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

void require_same_providers(const run::Job& job, RankStates& states) {
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

void load_states(run::RankSession& session, run::TrainingState& state,
                 const CheckpointReader& reader) {
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
      hook.load(state.position(), *states.of(source).reader(hook.state_id()));
    });
  }
}

}  // namespace

void restore(run::RankSession& session, run::TrainingState& state, const CheckpointReader& reader) {
  const auto put_back = [&](const std::vector<NamedTensor>& saved,
                            const std::vector<NamedTensor>& targets, const char* what) {
    run::copy_by_name(saved, targets, fmt::format("the {} in {}", what, reader.path().string()),
                      "it is of another model, so resume with the recipe that it was trained with");
  };
  put_back(reader.model(), state.model(), "model");
  put_back(reader.optimizer(), state.optimizer().state(), "optimizer");
  state.position().resumed(reader.window());
  load_states(session, state, reader);
  if (state.position().windows() != reader.window()) {
    throw DataError(
        fmt::format("{} is of window {}, but its sampler's state is of window {}; one of its files "
                    "is of another step",
                    reader.path().string(), reader.window(), state.position().windows()));
  }
  session.require_equal_digest(run::digest_of(state.model()), "the restored model");
}

}  // namespace tally::save
