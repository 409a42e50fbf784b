#include "report/text.h"

#include "report/numbers.h"

#include <fmt/format.h>

#include <algorithm>

namespace tally::report {
namespace {

constexpr size_t kLongest = 200;

struct Range {
  char32_t first, last;
};
constexpr Range kUnprintable[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c},
                                  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                                  {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

bool is_invalid_byte(std::string_view taken) {
  return taken.size() == 1 && static_cast<unsigned char>(taken[0]) >= 0x80;
}

/// Appends the first character of `text` to `line`, and takes it off.
void move_character(std::string_view& text, std::string& line) {
  const std::string_view before = text;
  const char32_t point = next_point(text);
  const std::string_view taken = before.substr(0, before.size() - text.size());
  if (is_invalid_byte(taken)) {
    line += fmt::format("\\x{:02X}", static_cast<unsigned>(static_cast<unsigned char>(taken[0])));
  } else if (is_unprintable(point)) {
    const auto number = static_cast<uint32_t>(point);
    line += number > 0xffff ? fmt::format("\\U{:08X}", number) : fmt::format("\\u{:04X}", number);
  } else {
    line += taken;
  }
}

}  // namespace

char32_t next_point(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80           ? 1
                        : (lead >> 5) == 0x06 ? 2
                        : (lead >> 4) == 0x0e ? 3
                        : (lead >> 3) == 0x1e ? 4
                                              : 0;
  char32_t point = length == 1 ? lead : lead & (0x7fu >> length);
  bool valid = length > 0 && length <= text.size();
  for (size_t i = 1; valid && i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    valid = (byte & 0xc0) == 0x80;
    point = point << 6 | (byte & 0x3f);
  }
  text.remove_prefix(valid ? length : 1);
  return valid ? point : 0xfffd;
}

bool is_unprintable(char32_t point) {
  return std::any_of(std::begin(kUnprintable), std::end(kUnprintable), [&](const Range& range) {
    return range.first <= point && point <= range.last;
  });
}

std::string one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) move_character(text, line);
  return line;
}

std::string shown(std::string_view text) {
  if (text.size() <= kLongest) return one_line(text);
  const size_t size = text.size();
  std::string line;
  while (line.size() < kLongest) move_character(text, line);
  return fmt::format("{}... ({} bytes)", line, grouped(static_cast<int64_t>(size)));
}

}  // namespace tally::report
