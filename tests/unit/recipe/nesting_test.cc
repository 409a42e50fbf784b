#include "recipe/nesting.h"

#include <gtest/gtest.h>

#include <string>

namespace tally::recipe {
namespace {

std::string repeated(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

TEST(FirstLineTooDeep, CountsPartsOfAKeyAndOpenBrackets) {
  EXPECT_EQ(first_line_too_deep(repeated("a.", kDeepest - 1) + "a = 1"), std::nullopt);
  EXPECT_EQ(first_line_too_deep("\n\n" + repeated("a.", kDeepest) + "a = 1"), 3);
  EXPECT_EQ(first_line_too_deep(repeated("\"=\" . ", kDeepest) + "a = 1"), 1);
  EXPECT_EQ(first_line_too_deep("a = " + repeated("[", kDeepest)), std::nullopt);
  EXPECT_EQ(first_line_too_deep("a = " + repeated("[\n", kDeepest) + "["), 1 + kDeepest);
  EXPECT_EQ(first_line_too_deep("a = " + repeated("{a=[", kDeepest)), 1);
}

TEST(FirstLineTooDeep, StartsAnewWithEachKey) {
  EXPECT_EQ(first_line_too_deep(repeated("a.b.c = 1.5\n[a.b]\n", 100)), std::nullopt);
  EXPECT_EQ(first_line_too_deep("a = [" + repeated("[1.5, 2.5], ", 100) + "]"), std::nullopt);
}

TEST(FirstLineTooDeep, LooksIntoNoStringAndNoComment) {
  const std::string deep = repeated("a.", 100) + repeated("[", 100);
  EXPECT_EQ(first_line_too_deep("a = \"" + deep + "\\\"" + deep + "\""), std::nullopt);
  EXPECT_EQ(first_line_too_deep("a = '" + deep + "\\'"), std::nullopt);
  EXPECT_EQ(first_line_too_deep("a = \"\"\"\n" + deep + "\"\n" + deep + "\"\"\"\""), std::nullopt);
  EXPECT_EQ(first_line_too_deep("a = '''\n" + deep + "'''"), std::nullopt);
  EXPECT_EQ(first_line_too_deep("# " + deep), std::nullopt);
  EXPECT_EQ(first_line_too_deep("a = '" + deep + "'\n# '\n" + deep), 3);
  EXPECT_EQ(first_line_too_deep("a = \"\"\"x\"\"\"\"\n" + deep), 2);
  EXPECT_EQ(first_line_too_deep("a = \"never closed\n" + deep), 2);
}

}  // namespace
}  // namespace tally::recipe
