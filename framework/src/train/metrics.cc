#include "train/metrics.h"

#include "checkpoint/atomic_file.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

namespace tally::train {
namespace {

using nlohmann::json;

/// JSON has no infinity and no NaN: a person must still see them.
json number(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

/// The lines of a metrics file up to that of window `windows` - 1. A crash may have torn the last.
std::string lines_before(const std::filesystem::path& file, int64_t windows) {
  std::ifstream stream(file);
  std::string kept;
  for (std::string line; std::getline(stream, line);) {
    const json entry = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!entry.is_object() || !entry.contains("window") || !entry["window"].is_number_integer())
      break;
    if (entry["window"].get<int64_t>() >= windows) break;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsLog::MetricsLog(std::optional<std::filesystem::path> file, std::vector<TermInfo> terms,
                       int64_t divisor)
    : path_(std::move(file)), terms_(std::move(terms)), divisor_(divisor) {}

void MetricsLog::open(int64_t windows) {
  if (!path_) return;
  const std::string kept = windows == 0 ? "" : lines_before(*path_, windows);
  checkpoint::replace_file(*path_, kept);
  stream_ = std::fopen(path_->c_str(), "ae");
  if (stream_ == nullptr) {
    throw DataError(
        fmt::format("cannot write {}: {}; check the folder's permissions and the free space",
                    path_->string(), std::strerror(errno)));
  }
}

MetricsLog::~MetricsLog() {
  if (stream_ != nullptr) std::fclose(stream_);
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
  metrics.loss = objective / static_cast<double>(divisor_);
  if (stream_ != nullptr) write(metrics, agreement);
  notes_.erase(metrics.window);
  return metrics;
}

void MetricsLog::write(const WindowMetrics& metrics, const distributed::Agreement& agreement) {
  const WindowNotes& notes = notes_[metrics.window];
  json line{{"window", metrics.window},
            {"loss", number(metrics.loss)},
            {"gradient_norm", number(metrics.gradient_norm)},
            {"finite", metrics.finite}};
  for (size_t t = 0; t < terms_.size(); ++t) {
    json term{{"name", terms_[t].name}, {"unit", terms_[t].unit}, {"N", metrics.counts[t]}};
    for (size_t rank = 0; rank < agreement.finished.size(); ++rank) {
      term["S"].push_back(number(agreement.finished[rank]->sums[t]));
      term["n"].push_back(agreement.finished[rank]->counts[t]);
      if (rank < notes.scales_by_rank.size())
        term["scale"].push_back(number(notes.scales_by_rank[rank][t]));
    }
    line["terms"].push_back(std::move(term));
  }
  line["seconds"] = {{"wait", notes.wait_seconds},       {"forward", notes.times.forward},
                     {"backward", notes.times.backward}, {"reduce", notes.times.reduce},
                     {"update", notes.times.update},     {"window", notes.total_seconds},
                     {"save", notes.save_seconds}};
  const std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size() ||
      std::fflush(stream_) != 0) {
    throw DataError(fmt::format("cannot write {}: {}; free some space and run again",
                                path_->string(), std::strerror(errno)));
  }
}

}  // namespace tally::train
