#include "checkpoint/lineage.h"

#include "checkpoint/json.h"

#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace tally::checkpoint {
namespace {

size_t links_in_common(const Lineage& one, const Lineage& other) {
  const auto differ = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  return static_cast<size_t>(differ.first - one.begin());
}

int64_t turn_of(const Step& step) { return step.lineage.back().turn; }

bool comes_after(const Step& one, const Step& other) {
  return std::pair(turn_of(one), one.window) > std::pair(turn_of(other), other.window);
}

}  // namespace

std::optional<int64_t> left_at(const Step& step, const Step& head) {
  const size_t common = links_in_common(step.lineage, head.lineage);
  if (common == 0 || common == head.lineage.size()) return std::nullopt;
  const int64_t from = head.lineage[common].from;
  const bool is_before = common == step.lineage.size() && step.window <= from;
  return is_before ? std::nullopt : std::optional(from);
}

bool leads_to(const Step& older, const Step& newer) {
  const bool is_of_the_same_links =
      links_in_common(older.lineage, newer.lineage) == older.lineage.size();
  return is_of_the_same_links && older.window <= newer.window && !left_at(older, newer);
}

std::vector<Step> line_of(std::vector<Step> steps) {
  if (steps.empty()) return steps;
  std::sort(steps.begin(), steps.end(), comes_after);
  const Step head = steps.front();
  for (const Step& step : steps) {
    if (step.lineage.front() == head.lineage.front()) continue;
    throw DataError(head.path.string() + " and " + step.path.string() +
                    " are of two runs, of which none went on from the other; name the step that is "
                    "meant");
  }
  std::erase_if(steps, [&](const Step& step) { return !leads_to(step, head); });
  return steps;
}

Lineage continued(const Step& from, const Digest& conditions, const std::vector<Step>& steps) {
  const auto newest = std::min_element(steps.begin(), steps.end(), comes_after);
  const bool is_newest = newest == steps.end() || !comes_after(*newest, from);
  Lineage lineage = from.lineage;
  if (is_newest && lineage.back().conditions == conditions) return lineage;
  const int64_t last = newest == steps.end() ? turn_of(from) : turn_of(*newest);
  lineage.push_back({conditions, from.window, std::max(last, turn_of(from)) + 1});
  return lineage;
}

nlohmann::json to_json(const Lineage& lineage) {
  nlohmann::json array = nlohmann::json::array();
  for (const Link& link : lineage)
    array.push_back(
        {{"conditions", link.conditions.hex()}, {"from", link.from}, {"turn", link.turn}});
  return array;
}

Lineage lineage_from_json(const nlohmann::json& array, int64_t window, const std::string& file) {
  Lineage lineage;
  if (array.is_array()) {
    for (const nlohmann::json& element : array) {
      require_keys(element, {"conditions", "from", "turn"}, file);
      lineage.push_back({digest_at(element, "conditions", file), integer_at(element, "from", file),
                         integer_at(element, "turn", file)});
    }
  }
  const auto is_misplaced = [](const Link& one, const Link& next) {
    return one.from > next.from || one.turn >= next.turn;
  };
  if (lineage.empty() || lineage.front().from != 0 || lineage.back().from > window ||
      std::adjacent_find(lineage.begin(), lineage.end(), is_misplaced) != lineage.end())
    throw DataError("cannot use " + file + ": 'lineage' must lead from window 0 to " +
                    std::to_string(window) + "; it is damaged, so take another copy");
  return lineage;
}

}  // namespace tally::checkpoint
