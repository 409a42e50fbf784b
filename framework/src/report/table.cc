#include "report/table.h"

#include "report/text.h"

#include <algorithm>
#include <stdexcept>

namespace tally::report {
namespace {

struct Range {
  char32_t first, last;
};
constexpr Range kNoWidth[] = {{0x0300, 0x036f}, {0x200b, 0x200f}, {0x20d0, 0x20ff},
                              {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
constexpr Range kWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
                           {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
                           {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                           {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template <size_t n>
bool within(const Range (&ranges)[n], char32_t point) {
  return std::any_of(ranges, ranges + n, [point](const Range& range) {
    return range.first <= point && point <= range.last;
  });
}

const char* escape(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "\x1b[32m";
    case Tone::kBad:
      return "\x1b[31m";
    case Tone::kFaint:
      return "\x1b[2m";
    case Tone::kPlain:
      break;
  }
  return "";
}

std::string painted(const Cell& cell, bool colour) {
  const std::string start = colour ? escape(cell.tone) : "";
  return start.empty() ? cell.text : start + cell.text + "\x1b[0m";
}

std::string format_line(const std::vector<Cell>& cells, const std::vector<Column>& columns,
                        const std::vector<int64_t>& widths, bool colour) {
  std::string line;
  std::string padding;  // Written only before more text, so that no line ends in spaces.
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string fill(static_cast<size_t>(widths[i] - display_width(cells[i].text)), ' ');
    if (i > 0) padding += "  ";
    if (columns[i].align == Align::kRight) padding += fill;
    if (!cells[i].text.empty()) {
      line += padding + painted(cells[i], colour);
      padding.clear();
    }
    if (columns[i].align == Align::kLeft) padding += fill;
  }
  return line + "\n";
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.title = one_line(column.title);
}

Table& Table::row(std::vector<Cell> cells) {
  if (cells.size() != columns_.size())
    throw std::invalid_argument("a row of " + std::to_string(cells.size()) +
                                " cells was added to a table of " +
                                std::to_string(columns_.size()) + " columns");
  for (Cell& cell : cells) cell.text = one_line(cell.text);
  rows_.push_back(std::move(cells));
  return *this;
}

std::string Table::text(bool colour) const {
  std::vector<Cell> titles;
  std::vector<int64_t> widths;
  for (const Column& column : columns_) {
    titles.emplace_back(column.title);
    widths.push_back(display_width(column.title));
  }
  for (const std::vector<Cell>& cells : rows_) {
    for (size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], display_width(cells[i].text));
  }
  std::vector<Cell> rule;
  rule.reserve(widths.size());
  for (const int64_t width : widths)
    rule.emplace_back(std::string(static_cast<size_t>(width), '-'), Tone::kFaint);
  std::string result = format_line(titles, columns_, widths, colour);
  result += format_line(rule, columns_, widths, colour);
  for (const std::vector<Cell>& cells : rows_)
    result += format_line(cells, columns_, widths, colour);
  return result;
}

int64_t display_width(std::string_view text) {
  int64_t width = 0;
  while (!text.empty()) {
    const char32_t point = next_point(text);
    width += within(kNoWidth, point) ? 0 : within(kWide, point) ? 2 : 1;
  }
  return width;
}

}  // namespace tally::report
