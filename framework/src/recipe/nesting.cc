#include "recipe/nesting.h"

#include "recipe/value.h"

#include <algorithm>

namespace tally::recipe {
namespace {

/// Where a string that begins at `begin` ends: behind its closing quotes, or where its line or the
/// text does.
size_t end_of_string(std::string_view text, size_t begin) {
  const char quote = text[begin];
  const std::string_view fence = text.substr(begin, 3);
  const bool many_lines = fence == "\"\"\"" || fence == "'''";
  size_t place = begin + (many_lines ? 3 : 1);
  for (; place < text.size(); ++place) {
    if (text[place] == '\\' && quote == '"') {
      ++place;
    } else if (many_lines) {
      if (text.substr(place, 3) != fence) continue;
      place += 3;  // and up to two quotes that belong to the string
      for (int more = 0; more < 2 && place < text.size() && text[place] == quote; ++more) ++place;
      return place;
    } else if (text[place] == quote) {
      return place + 1;
    } else if (text[place] == '\n') {
      return place;
    }
  }
  return text.size();
}

bool continues_key(char c) { return is_bare_key({&c, 1}) || c == ' ' || c == '\t'; }

int line_at(std::string_view text, size_t place) {
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(place), '\n'));
}

}  // namespace

std::optional<int> first_line_too_deep(std::string_view text) {
  int brackets = 0;
  int dots = 0;
  for (size_t place = 0; place < text.size(); ++place) {
    const char c = text[place];
    if (c == '"' || c == '\'') {
      place = end_of_string(text, place) - 1;
      continue;
    }
    if (c == '#') place = std::min(text.find('\n', place), text.size() - 1);
    if (c == '[' || c == '{') ++brackets;
    if ((c == ']' || c == '}') && brackets > 0) --brackets;
    if (c == '.') {
      ++dots;
    } else if (!continues_key(c)) {
      dots = 0;
    }
    if (brackets > kDeepest || dots >= kDeepest) return line_at(text, place);
  }
  return std::nullopt;
}

}  // namespace tally::recipe
