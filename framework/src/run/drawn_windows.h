#pragma once

#include "digest/sha256.h"
#include "run/job.h"

#include <filesystem>
#include <vector>

namespace tally::run {

/// The windows that a recipe's sampler draws from its start.
struct DrawnWindows {
  std::vector<WindowPlan> plans;
  std::vector<Digest> chains;  ///< After each plan.
  Digest chain;                ///< After the last.
};

/// Draws up to `windows` plans; fewer when the data end before. The job's sampler is used up by it.
/// Needs prepared data.
DrawnWindows draw_windows(Job& job, int64_t windows);

/// A JSON line a window, for reading: window, chain, and the example ids by shard and microbatch.
void write_windows(const DrawnWindows& drawn, const std::filesystem::path& file);

}  // namespace tally::run
