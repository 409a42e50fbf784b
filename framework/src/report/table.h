#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally::report {

enum class Align { kLeft, kRight };

/// How a cell is coloured where colour is asked for.
enum class Tone { kPlain, kGood, kBad, kFaint };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

struct Cell {
  Cell(std::string cell_text, Tone cell_tone = Tone::kPlain)
      : text(std::move(cell_text)), tone(cell_tone) {}
  Cell(const char* cell_text) : text(cell_text) {}

  std::string text;
  Tone tone = Tone::kPlain;
};

/// A table for a terminal: titles, a rule, one line a row, two spaces between columns. Cells are
/// UTF-8; a control character in one becomes a space, so that a row stays a line.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  /// Throws std::invalid_argument unless there is a cell for every column.
  Table& row(std::vector<Cell> cells);

  /// Every line ends in a newline, and none in spaces. `colour`: with terminal escape sequences;
  /// the caller knows the terminal and NO_COLOR.
  std::string text(bool colour = false) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Terminal columns that UTF-8 text takes: none for combining marks, two for wide East Asian
/// characters and emoji, one for everything else, an invalid byte too.
int64_t display_width(std::string_view text);

}  // namespace tally::report
