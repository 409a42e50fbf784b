#pragma once

#include "digest/sha256.h"
#include "recipe/recipe.h"
#include "run/job.h"

#include <map>
#include <string>
#include <vector>

namespace tally::run {

/// Whether a key of the recipe decides what a window computes. Those that do not: how long a run is
/// and when it is saved (train.updates, train.stop_at, checkpoint.*), run.timeout, and run.ranks,
/// which a checkpoint has an entry of its own for.
bool decides_windows(const std::string& key);

/// Values by key, as JSON.
using Values = std::map<std::string, std::string>;

/// The value of every key of the recipe.
Values values_of(const recipe::Recipe& recipe);

/// A key that has other values in two recipes; "absent" where it has none.
struct Difference {
  std::string key;
  std::string one;
  std::string other;
};

/// By key.
std::vector<Difference> differences(const Values& one, const Values& other);

/// Of everything that decides what this job's windows compute: the keys above, the data, the plugin
/// files, LibTorch, the number of ranks.
Digest conditions_of(const Job& job, const std::string& data_lock);

}  // namespace tally::run
