#pragma once

#include "digest/sha256.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tally::checkpoint {

/// A stretch of a run under one set of conditions.
struct Link {
  Digest conditions;  ///< Of everything that decides what a window computes.
  int64_t from = 0;   ///< Finished windows when it began.
  int64_t turn = 0;   ///< Counts, in one folder, how often a run went on otherwise than before.
  bool operator==(const Link&) const = default;
};

/// How a run came to where it is, oldest stretch first. A run that goes on from its newest step
/// under the same conditions adds nothing, so that stopping leaves no trace in a checkpoint; one
/// that goes on under others, or from a step before the newest, adds a link.
using Lineage = std::vector<Link>;

/// A step of a checkpoint folder, as its manifest describes it: its other files are not looked at.
struct Step {
  std::filesystem::path path;
  int64_t window = 0;
  Lineage lineage;
};

/// Whether a run that stands at `newer` came through `older`, or is there.
bool leads_to(const Step& older, const Step& newer);

/// The window from which the run of `head` went on otherwise than `step` did; nullopt when the step
/// leads to the head, and when it is of another run.
std::optional<int64_t> left_at(const Step& step, const Step& head);

/// The steps that lead to the head of a run, head first. The head is the highest window of the last
/// turn, whatever its number: a run that went back to window 20 and now stands at 25 has left step
/// 50 behind. Throws DataError that names two steps that did not begin as one run.
std::vector<Step> line_of(std::vector<Step> steps);

/// The lineage of a run that goes on from `from` under `conditions`, in a folder that holds
/// `steps`.
Lineage continued(const Step& from, const Digest& conditions, const std::vector<Step>& steps);

nlohmann::json to_json(const Lineage& lineage);
/// Throws DataError with `file` unless it is the lineage of a step after `window` windows.
Lineage lineage_from_json(const nlohmann::json& array, int64_t window, const std::string& file);

}  // namespace tally::checkpoint
