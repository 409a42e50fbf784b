// Tests the hook without the host and without a test library.
#include "scaled_mean.h"

#include <tally/testing/fakes.h>

#include <cstdio>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (!holds) {
    std::printf("failed: %s\n", what);
    ++failures;
  }
}

std::vector<double> scales(const ScaledMean& reducer, int64_t global, int64_t local) {
  return reducer.scale({{.name = "next_token", .unit = "token"}},
                       {{.global = global, .local = local}}, {.world = 2, .divisor = 2});
}

}  // namespace

int main() {
  using tally::testing::FakeConfig;
  using tally::testing::FakeContext;

  FakeContext plain;
  const ScaledMean mean(plain);
  expect(scales(mean, 48, 12).at(0) == 2.0 / 48.0, "a token weighs divisor / N");
  expect(scales(mean, 48, 36).at(0) == 2.0 / 48.0, "a token weighs the same on every rank");
  expect(scales(mean, 0, 0).at(0) == 0.0, "a window without tokens has scale 0");

  FakeContext tripled(FakeConfig{{"factor", 3.0}});
  expect(scales(ScaledMean(tripled), 48, 12).at(0) == 6.0 / 48.0, "the factor multiplies");
  expect(tripled.config().unread().empty(), "every option is read in the constructor");

  FakeContext negative(FakeConfig{{"factor", -1.0}});
  try {
    const ScaledMean refused(negative);
    expect(false, "a negative factor is rejected");
  } catch (const tally::ConfigError&) {
  }

  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
