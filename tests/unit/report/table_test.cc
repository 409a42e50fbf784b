#include "report/table.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tally::report {
namespace {

Table recipes() {
  Table table({{"recipe"}, {"max error", Align::kRight}, {"verdict"}});
  table.row({"correct", "5.960e-08", {"pass", Tone::kGood}});
  table.row({"wrong", "1.2e-02", {"FAIL", Tone::kBad}});
  return table;
}

TEST(Table, AlignsColumnsUnderARule) {
  EXPECT_EQ(recipes().text(),
            "recipe   max error  verdict\n"
            "-------  ---------  -------\n"
            "correct  5.960e-08  pass\n"
            "wrong      1.2e-02  FAIL\n");
}

TEST(Table, ColoursOnlyWhereAsked) {
  EXPECT_EQ(recipes().text().find('\x1b'), std::string::npos);
  EXPECT_EQ(recipes().text(true),
            "recipe   max error  verdict\n"
            "\x1b[2m-------\x1b[0m  \x1b[2m---------\x1b[0m  \x1b[2m-------\x1b[0m\n"
            "correct  5.960e-08  \x1b[32mpass\x1b[0m\n"
            "wrong      1.2e-02  \x1b[31mFAIL\x1b[0m\n");
}

TEST(Table, CountsWhatATerminalShowsAndNotBytes) {
  Table table({{"größe"}, {"n", Align::kRight}});
  table.row({"e\u0301tat", "1"}).row({"漢字", "22"}).row({"xxxxxx", "3"});
  EXPECT_EQ(table.text(),
            "größe    n\n"
            "------  --\n"
            "e\u0301tat     1\n"
            "漢字    22\n"
            "xxxxxx   3\n");
}

TEST(Table, KeepsARowOnOneLine) {
  Table table({{"a"}, {"b"}});
  table.row({"one\ntwo\t\x1b[31m", "x"});
  EXPECT_EQ(table.text(),
            "a                             b\n"
            "----------------------------  -\n"
            "one\\u000Atwo\\u0009\\u001B[31m  x\n");
}

TEST(Table, EndsNoLineInSpaces) {
  Table table({{"a"}, {"long title"}, {"c", Align::kRight}});
  table.row({"", "", ""}).row({"", "x", ""});
  EXPECT_EQ(table.text(),
            "a  long title  c\n"
            "-  ----------  -\n"
            "\n"
            "   x\n");
}

TEST(Table, RefusesARowOfAnotherLength) {
  Table table({{"a"}, {"b"}});
  try {
    table.row({"x"});
    ADD_FAILURE() << "accepted one cell for two columns";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "a row of 1 cells was added to a table of 2 columns");
  }
}

TEST(DisplayWidth, IsThatOfTheCharacters) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("Σ ∇ ≤"), 5);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("한글"), 4);
  EXPECT_EQ(display_width("😀"), 2);
  EXPECT_EQ(display_width("\xff\xc3"), 2) << "invalid bytes are shown as one sign each";
  EXPECT_EQ(display_width("\xe6\xbc"), 2) << "a character that is cut short";
}

}  // namespace
}  // namespace tally::report
