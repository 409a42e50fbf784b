#pragma once

#include <string>
#include <string_view>

/// Foreign text in a sentence: values of a recipe, names of files, what a library says.
namespace tally::report {

/// Takes one code point off the front of `text`; an invalid byte is one of its own, U+FFFD.
char32_t next_point(std::string_view& text);

/// Whether a character does not show as itself and could make a line read as another: controls,
/// line ends, marks that turn the direction of text, and what has no width.
bool is_unprintable(char32_t point);

/// On one line, whatever it holds: unprintable characters as \uXXXX, which TOML reads back, and
/// bytes that are no UTF-8 as \xNN.
std::string one_line(std::string_view text);

/// one_line, as much as a sentence bears: of more than 200 bytes the beginning, and their number.
std::string shown(std::string_view text);

}  // namespace tally::report
