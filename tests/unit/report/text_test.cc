#include "report/text.h"

#include <gtest/gtest.h>

namespace tally::report {
namespace {

TEST(OneLine, KeepsWhatShowsAsItself) {
  EXPECT_EQ(one_line(""), "");
  EXPECT_EQ(one_line("a b\"\\c"), "a b\"\\c");
  EXPECT_EQ(one_line("größe 漢字 😀 e\u0301"), "größe 漢字 😀 e\u0301");
}

TEST(OneLine, EscapesWhatDoesNot) {
  EXPECT_EQ(one_line(std::string_view("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(one_line("a\nb\r\t\x1b[31m\x7f"), "a\\u000Ab\\u000D\\u0009\\u001B[31m\\u007F");
  EXPECT_EQ(one_line("\u0085\u200b\u2028\u202e\u2066\ufeff"),
            "\\u0085\\u200B\\u2028\\u202E\\u2066\\uFEFF");
  EXPECT_EQ(one_line("\U000e0041"), "\\U000E0041");
}

TEST(OneLine, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(one_line("a\xff\xc3"), "a\\xFF\\xC3");
  EXPECT_EQ(one_line("\ufffd"), "\ufffd") << "the sign for them is a character like any other";
}

TEST(Shown, ShortensALongText) {
  const std::string most(200, 'x');
  EXPECT_EQ(shown(most), most);
  EXPECT_EQ(shown(most + "x"), most + "... (201 bytes)");
  EXPECT_EQ(shown(std::string(10 << 20, 'x')), most + "... (10,485,760 bytes)");
}

TEST(Shown, CutsNoCharacterInTwo) {
  std::string text(199, 'x');
  for (int i = 0; i < 100; ++i) text += "漢";
  EXPECT_EQ(shown(text), std::string(199, 'x') + "漢... (499 bytes)");
  EXPECT_EQ(shown(std::string(300, '\n')).size(), 204 + std::string("... (300 bytes)").size());
}

}  // namespace
}  // namespace tally::report
