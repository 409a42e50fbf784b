#include "recipe/file_name.h"

#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tally::recipe {
namespace {

/// Of a name, in bytes: file systems allow 255, of which tally needs some for endings.
constexpr size_t kLongestName = 100;
/// Of a path, in bytes: one less than PATH_MAX.
constexpr size_t kLongestPath = 4095;
/// Separators here or elsewhere, and what a file system of another machine refuses.
constexpr std::string_view kNotPortable = "/\\:*?\"<>|";

/// The first character that does not show, as the message shows it.
std::optional<std::string> find_unprintable(std::string_view text) {
  while (!text.empty()) {
    const std::string_view before = text;
    report::next_point(text);
    const std::string_view taken = before.substr(0, before.size() - text.size());
    std::string shown = report::one_line(taken);
    if (shown != taken) return shown;
  }
  return std::nullopt;
}

std::optional<std::string> fault_of_text(std::string_view text, size_t longest) {
  if (text.empty()) return "must not be empty";
  if (text.size() > longest) {
    return fmt::format("must have at most {} bytes and has {}", longest, text.size());
  }
  if (const auto found = find_unprintable(text)) {
    return fmt::format("must not hold {}, which does not show", *found);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fault_of_name(std::string_view text) {
  if (auto fault = fault_of_text(text, kLongestName)) return fault;
  const size_t found = text.find_first_of(kNotPortable);
  if (found != std::string_view::npos) {
    return fmt::format("must be one file name everywhere, so without '{}'", text[found]);
  }
  if (text.front() == '.' || text.back() == '.') return "must not begin or end with a dot";
  if (text.front() == ' ' || text.back() == ' ') return "must not begin or end with a blank";
  return std::nullopt;
}

std::optional<std::string> fault_of_path(std::string_view text) {
  return fault_of_text(text, kLongestPath);
}

}  // namespace tally::recipe
