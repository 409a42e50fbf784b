#include "report/numbers.h"

#include <gtest/gtest.h>

#include <limits>

namespace tally::report {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Grouped, PutsACommaBeforeEachThreeDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-100'000), "-100,000");
  EXPECT_EQ(grouped(282'628), "282,628");
  EXPECT_EQ(grouped(std::numeric_limits<int64_t>::max()), "9,223,372,036,854,775,807");
  EXPECT_EQ(grouped(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Scientific, ShowsFourDigits) {
  EXPECT_EQ(scientific(1.2344e-7), "1.234e-07");
  EXPECT_EQ(scientific(-12345.6), "-1.235e+04");
  EXPECT_EQ(scientific(0.0), "0");
  EXPECT_EQ(scientific(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(scientific(-kInfinity), "-inf");
}

TEST(Seconds, ChangesUnitWhereRoundingReachesTheNext) {
  EXPECT_EQ(seconds(0), "0 s");
  EXPECT_EQ(seconds(850e-6), "850 us");
  EXPECT_EQ(seconds(0.9994e-3), "999 us");
  EXPECT_EQ(seconds(0.9996e-3), "1.0 ms");
  EXPECT_EQ(seconds(0.0123), "12.3 ms");
  EXPECT_EQ(seconds(0.99996), "1.00 s");
  EXPECT_EQ(seconds(4.561), "4.56 s");
  EXPECT_EQ(seconds(59.994), "59.99 s");
  EXPECT_EQ(seconds(59.996), "1 min 00 s");
  EXPECT_EQ(seconds(125), "2 min 05 s");
  EXPECT_EQ(seconds(3599.4), "59 min 59 s");
  EXPECT_EQ(seconds(3599.6), "1 h 00 min");
  EXPECT_EQ(seconds(10'949), "3 h 02 min");
  EXPECT_EQ(seconds(-125), "-2 min 05 s");
  EXPECT_EQ(seconds(kInfinity), "inf s");
}

TEST(Bytes, UsesPowersOf1024) {
  EXPECT_EQ(bytes(0), "0 B");
  EXPECT_EQ(bytes(1023), "1023 B");
  EXPECT_EQ(bytes(1024), "1.0 KiB");
  EXPECT_EQ(bytes(1'048'575), "1.0 MiB");
  EXPECT_EQ(bytes(1'363'148), "1.3 MiB");
  EXPECT_EQ(bytes(std::numeric_limits<int64_t>::max()), "8.0 EiB");
  EXPECT_EQ(bytes(std::numeric_limits<int64_t>::min()), "-8.0 EiB");
}

TEST(Numbers, CountOneThingOrMany) {
  EXPECT_EQ(counted(0, "window"), "0 windows");
  EXPECT_EQ(counted(1, "window"), "1 window");
  EXPECT_EQ(counted(2, "rank"), "2 ranks");
}

}  // namespace
}  // namespace tally::report
