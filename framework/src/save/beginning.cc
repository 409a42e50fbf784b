#include "save/beginning.h"

#include "checkpoint/data_lock.h"
#include "run/conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>

#include <algorithm>
#include <set>

namespace tally::save {
namespace {

namespace fs = std::filesystem;
using checkpoint::CheckpointReader;
using checkpoint::DamagedCheckpoint;
using checkpoint::Step;

/// What a folder holds, and what this job makes of it.
class Search {
 public:
  Search(const run::Job& job, const std::string& data_lock, const Wish& wish)
      : job_(job),
        data_lock_(data_lock),
        wish_(wish),
        folder_(job.settings.checkpoint_folder),
        conditions_(run::conditions_of(job, data_lock)),
        steps_(checkpoint::known_steps(folder_, &damaged_)) {}

  Beginning run() {
    Beginning beginning;
    if (wish_.resume == "latest") {
      beginning.checkpoint = latest();
    } else if (!wish_.resume.empty()) {
      beginning.checkpoint = named();
    }
    if (beginning.checkpoint) {
      beginning.in_folder = is_in_folder(*beginning.checkpoint);
      beginning.lineage = continued(step_of(*beginning.checkpoint), conditions_, steps_);
    } else {
      beginning.lineage = {{conditions_, 0}};
    }
    if (wish_.overwrite && (beginning.in_folder || wish_.resume == "latest"))
      throw ConfigError(fmt::format(
          "--overwrite takes the place of the steps in {}, and --resume goes on from one "
          "of them: give one of the two",
          folder_.string()));
    if (!beginning.in_folder) require_room();
    beginning.remarks = std::move(remarks_);
    return beginning;
  }

 private:
  static Step step_of(const CheckpointReader& reader) {
    return {reader.path(), reader.window(), reader.manifest().lineage};
  }

  CheckpointReader named() const {
    CheckpointReader reader = CheckpointReader::open(wish_.resume);
    const auto found = differences(job_, data_lock_, reader, wish_.allowed);
    if (!found.empty())
      throw DataError(
          fmt::format("{} is of another run: {}. Resume with the recipe and data that it was made "
                      "with, or allow a key with --allow KEY",
                      wish_.resume, fmt::join(found, "; ")));
    return reader;
  }

  std::optional<CheckpointReader> latest() {
    for (const DamagedCheckpoint& one : damaged_) pass_over(one.path, one.reason);
    if (steps_.empty() && damaged_.empty()) return std::nullopt;
    std::vector<Step> candidates = of_our_conditions();
    if (candidates.empty()) candidates = that_may_be_continued();
    const std::vector<Step> line = checkpoint::line_of(candidates);
    std::vector<DamagedCheckpoint> damaged;
    std::optional<CheckpointReader> whole = checkpoint::first_whole(line, &damaged);
    for (const DamagedCheckpoint& one : damaged) pass_over(one.path, one.reason);
    if (!whole)
      throw DataError(
          fmt::format("no checkpoint in {} can be resumed: {}. Name a step with --resume, restore "
                      "one from a copy, or begin anew with --overwrite or another --checkpoints",
                      folder_.string(), fmt::join(remarks_, "; ")));
    pass_over_newer_than(step_of(*whole));
    return whole;
  }

  std::vector<Step> of_our_conditions() const {
    std::vector<Step> result;
    std::copy_if(steps_.begin(), steps_.end(), std::back_inserter(result),
                 [&](const Step& step) { return step.lineage.back().conditions == conditions_; });
    return result;
  }

  std::vector<Step> that_may_be_continued() {
    std::vector<Step> result;
    for (const Step& step : steps_) {
      try {
        const auto found =
            differences(job_, data_lock_, CheckpointReader::open(step.path), wish_.allowed);
        if (found.empty()) {
          result.push_back(step);
        } else {
          pass_over(step.path, fmt::format("it is of another run: {}", fmt::join(found, "; ")));
        }
      } catch (const DataError& error) {
        pass_over(step.path, error.what());
      }
    }
    return result;
  }

  /// Nobody must wonder why a higher number was not taken.
  void pass_over_newer_than(const Step& chosen) {
    for (const Step& step : steps_) {
      if (step.window <= chosen.window || passed_over_.contains(step.path)) continue;
      const auto left = checkpoint::left_at(step, chosen);
      if (left) {
        pass_over(step.path, fmt::format("the run went on from window {} without it", *left));
      } else {
        const bool is_ours = step.lineage.front() == chosen.lineage.front();
        pass_over(step.path,
                  is_ours ? "it was made under other conditions" : "it is of another run");
      }
    }
  }

  void pass_over(const fs::path& step, const std::string& reason) {
    passed_over_.insert(step);
    remarks_.push_back(fmt::format("{} is passed over: {}", step.string(), reason));
  }

  bool is_in_folder(const CheckpointReader& reader) const {
    std::error_code error;
    return fs::equivalent(fs::absolute(reader.path()) / "..", folder_, error) && !error;
  }

  /// Steps of two runs in one folder could not be told apart by a person, and would overwrite each
  /// other.
  void require_room() const {
    const std::vector<fs::path> there = checkpoint::list_steps(folder_);
    if (there.empty() || wish_.overwrite) return;
    throw ConfigError(
        fmt::format("{} holds {} of an earlier run: go on from it with --resume latest, let this "
                    "run take its place with --overwrite, or name another folder with "
                    "--checkpoints",
                    folder_.string(), there.front().filename().string()));
  }

  const run::Job& job_;
  const std::string& data_lock_;
  const Wish& wish_;
  const fs::path& folder_;
  const Digest conditions_;
  std::vector<DamagedCheckpoint> damaged_;
  const std::vector<Step> steps_;  ///< Newest window first.
  std::vector<std::string> remarks_;
  std::set<fs::path> passed_over_;
};

}  // namespace

std::vector<std::string> differences(const run::Job& job, const std::string& data_lock,
                                     const CheckpointReader& reader,
                                     const std::vector<std::string>& allowed) {
  std::vector<std::string> result;
  recipe::Sources sources;
  sources.recipe = reader.path() / checkpoint::kRecipeFile;
  const run::Values saved = run::values_of(recipe::Recipe::load(sources));
  for (const run::Difference& difference : run::differences(saved, run::values_of(job.recipe))) {
    const bool allows = std::find(allowed.begin(), allowed.end(), difference.key) != allowed.end();
    if (!run::decides_windows(difference.key) || allows) continue;
    result.push_back(fmt::format("{} is {} in the checkpoint and {} here", difference.key,
                                 difference.one, difference.other));
  }
  const auto their_data = checkpoint::DataLock::from_json(
      reader.data_lock(), (reader.path() / checkpoint::kDataLockFile).string());
  const auto our_data = checkpoint::DataLock::from_json(data_lock, checkpoint::kDataLockFile);
  for (std::string& sentence : their_data.differences(our_data))
    result.push_back(std::move(sentence));
  return result;
}

Beginning find_beginning(const run::Job& job, const std::string& data_lock, const Wish& wish) {
  return Search(job, data_lock, wish).run();
}

void remove_steps(const fs::path& folder) {
  for (const fs::path& step : checkpoint::list_steps(folder)) checkpoint::remove_step(step);
}

}  // namespace tally::save
