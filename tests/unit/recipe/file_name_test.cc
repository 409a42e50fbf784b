#include "recipe/file_name.h"

#include <gtest/gtest.h>

namespace tally::recipe {
namespace {

TEST(FaultOfName, GoodNames) {
  for (const char* name : {"correct", "a", "a.b", "résumé 2", "漢字", "-x", "a_b"}) {
    EXPECT_EQ(fault_of_name(name), std::nullopt) << name;
  }
  EXPECT_EQ(fault_of_name(std::string(100, 'x')), std::nullopt);
}

TEST(FaultOfName, SaysWhatIsWrong) {
  EXPECT_EQ(fault_of_name(""), "must not be empty");
  EXPECT_EQ(fault_of_name(std::string(101, 'x')), "must have at most 100 bytes and has 101");
  EXPECT_EQ(fault_of_name("a\x1b[31mb"), "must not hold \\u001B, which does not show");
  EXPECT_EQ(fault_of_name("a\u202eb"), "must not hold \\u202E, which does not show");
  EXPECT_EQ(fault_of_name("a\xff"), "must not hold \\xFF, which does not show");
  for (const char c : std::string("/\\:*?\"<>|")) {
    EXPECT_EQ(fault_of_name(std::string("a") + c),
              std::string("must be one file name everywhere, so without '") + c + "'");
  }
  for (const char* name : {".", "..", ".a", "a."}) {
    EXPECT_EQ(fault_of_name(name), "must not begin or end with a dot") << name;
  }
  EXPECT_EQ(fault_of_name(" a"), "must not begin or end with a blank");
  EXPECT_EQ(fault_of_name("a "), "must not begin or end with a blank");
}

TEST(FaultOfPath, AllowsWhatAPathMayHold) {
  EXPECT_EQ(fault_of_path("../a b/.c:d"), std::nullopt);
  EXPECT_EQ(fault_of_path(std::string(4095, 'x')), std::nullopt);
  EXPECT_EQ(fault_of_path(std::string(4096, 'x')), "must have at most 4095 bytes and has 4096");
  EXPECT_EQ(fault_of_path(""), "must not be empty");
  EXPECT_EQ(fault_of_path(std::string_view("a\0", 2)),
            "must not hold \\u0000, which does not show");
}

}  // namespace
}  // namespace tally::recipe
