#include "train/metrics.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>

namespace tally::train {
namespace {

MetricsLog log_in(const std::filesystem::path& file) {
  return {file, {{.name = "main", .unit = "token"}}, 1};
}

TEST(MetricsFile, ARunThatGoesOnKeepsTheLinesOfItsWindows) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "metrics.jsonl";
  const std::string two = "{\"window\":0,\"loss\":1.5}\n{\"window\":1,\"loss\":1.25}\n";
  const std::vector<std::string> rests{"", "{\"window\":2,\"loss\":1.0}\n", "{\"window\":2,\"lo",
                                       "\n", "{\"window\":\"x\"}\n{\"window\":1}\n"};
  for (const std::string& rest : rests) {
    put(file, two + rest);
    log_in(file).open(2);
    EXPECT_EQ(content_of(file), two) << rest;
  }
}

TEST(MetricsFile, ARunFromItsFirstWindowStartsAnEmptyFile) {
  const TemporaryFolder folder;
  put(folder / "metrics.jsonl", "{\"window\":0}\n");
  log_in(folder / "metrics.jsonl").open(0);
  EXPECT_EQ(content_of(folder / "metrics.jsonl"), "");
}

TEST(MetricsFile, ARunThatGoesOnElsewhereStartsAnEmptyFile) {
  const TemporaryFolder folder;
  log_in(folder / "metrics.jsonl").open(7);
  EXPECT_EQ(content_of(folder / "metrics.jsonl"), "");
}

}  // namespace
}  // namespace tally::train
