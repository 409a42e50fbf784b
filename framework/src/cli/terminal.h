#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace tally::cli {

/// What a person or a program reads: text on standard output, or with --json one document there.
/// Logs and progress go to standard error.
class Terminal {
 public:
  explicit Terminal(bool json) : json_(json) {}
  bool json() const { return json_; }

  /// Whether standard output is a terminal that wants colour (NO_COLOR is not set).
  bool colour() const;
  /// A line for a person; nothing with --json.
  void line(std::string_view text = {}) const;
  /// A line for a person that is no result: on standard error, with --json too.
  void remark(std::string_view text) const;
  /// The one document of a verb; nothing without --json.
  void document(const nlohmann::json& document) const;

 private:
  bool json_;
};

/// Redraws one line of standard error while something runs; silent where that is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(std::string_view text);

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace tally::cli
