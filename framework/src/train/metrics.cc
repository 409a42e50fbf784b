#include "train/metrics.h"

#include "report/json_number.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace tally::train {
namespace {

using nlohmann::json;

}  // namespace

MetricsLog::MetricsLog(std::optional<std::filesystem::path> file, std::vector<TermInfo> terms,
                       int64_t divisor)
    : terms_(std::move(terms)), divisor_(divisor) {
  if (file) lines_.emplace(std::move(*file));
}

void MetricsLog::open(int64_t windows) {
  if (lines_) lines_->open(windows);
}

void MetricsLog::ran(int64_t window, WindowNotes notes) { notes_[window] = std::move(notes); }

std::optional<WindowMetrics> MetricsLog::finished(const distributed::Agreement& agreement) {
  if (!agreement.finished[0]) return std::nullopt;
  WindowMetrics metrics;
  metrics.window = agreement.finished[0]->window;
  metrics.gradient_norm = agreement.finished[0]->gradient_norm;
  metrics.counts.assign(terms_.size(), 0);
  double objective = 0.0;
  for (const auto& rank : agreement.finished) {
    objective += rank->objective;
    metrics.finite = metrics.finite && rank->finite;
    metrics.counts_by_rank.push_back(rank->counts[0]);
    for (size_t t = 0; t < terms_.size(); ++t) metrics.counts[t] += rank->counts[t];
  }
  const bool counted = std::any_of(metrics.counts.begin(), metrics.counts.end(),
                                   [](int64_t count) { return count != 0; });
  if (counted) metrics.loss = objective / static_cast<double>(divisor_);
  if (lines_) write(metrics, agreement);
  notes_.erase(metrics.window);
  return metrics;
}

void MetricsLog::write(const WindowMetrics& metrics, const distributed::Agreement& agreement) {
  const WindowNotes& notes = notes_[metrics.window];
  json line{{"window", metrics.window},
            {"loss", report::number(metrics.loss)},
            {"gradient_norm", report::number(metrics.gradient_norm)},
            {"finite", metrics.finite}};
  for (size_t t = 0; t < terms_.size(); ++t) {
    json term{{"name", terms_[t].name}, {"unit", terms_[t].unit}, {"N", metrics.counts[t]}};
    for (size_t rank = 0; rank < agreement.finished.size(); ++rank) {
      term["S"].push_back(report::number(agreement.finished[rank]->sums[t]));
      term["n"].push_back(agreement.finished[rank]->counts[t]);
      if (rank < notes.scales_by_rank.size())
        term["scale"].push_back(report::number(notes.scales_by_rank[rank][t]));
    }
    line["terms"].push_back(std::move(term));
  }
  line["seconds"] = {{"wait", notes.wait_seconds},       {"forward", notes.times.forward},
                     {"backward", notes.times.backward}, {"reduce", notes.times.reduce},
                     {"update", notes.times.update},     {"window", notes.total_seconds},
                     {"save", notes.save_seconds}};
  lines_->append(line.dump());
}

}  // namespace tally::train
