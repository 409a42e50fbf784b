#pragma once

#include "distributed/control_record.h"
#include "train/json_lines.h"
#include "train/window.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tally::train {

/// What rank 0 knows of a window when it has run; the rest comes with the control record two
/// windows later.
struct WindowNotes {
  std::vector<std::vector<double>> scales_by_rank;  ///< [world][terms]
  PhaseTimes times;
  double wait_seconds = 0.0;   ///< Waiting for the loader.
  double total_seconds = 0.0;  ///< From asking for the window to the end of its update.
  double save_seconds = 0.0;   ///< That a checkpoint after the window held training up.
};

/// How a window went over all ranks.
struct WindowMetrics {
  int64_t window = 0;
  /// The objective that the reducer really trains: sum over ranks and passes of what it returned,
  /// by the divisor. nullopt where no term counts anything: such a window has no mean.
  std::optional<double> loss;
  double gradient_norm = 0.0;
  bool finite = true;
  std::vector<int64_t> counts;          ///< N of each term.
  std::vector<int64_t> counts_by_rank;  ///< n of the first term.
};

/// Collects both halves of each window's metrics and appends a JSON line a window to a file, on
/// rank 0.
class MetricsLog {
 public:
  /// `file`: nullopt on every rank but 0, where nothing is written.
  MetricsLog(std::optional<std::filesystem::path> file, std::vector<TermInfo> terms,
             int64_t divisor);

  /// Makes the file. A run that goes on after `windows` windows keeps the lines of those. Throws
  /// DataError when it cannot be made.
  void open(int64_t windows);
  void ran(int64_t window, WindowNotes notes);
  void saved(int64_t window, double seconds) { notes_[window].save_seconds = seconds; }
  /// nullopt when the agreement carries no finished window. Throws DataError when the line cannot
  /// be written.
  std::optional<WindowMetrics> finished(const distributed::Agreement& agreement);

 private:
  void write(const WindowMetrics& metrics, const distributed::Agreement& agreement);

  std::optional<JsonLines> lines_;
  std::vector<TermInfo> terms_;
  int64_t divisor_;
  std::map<int64_t, WindowNotes> notes_;
};

}  // namespace tally::train
