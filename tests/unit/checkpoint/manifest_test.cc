#include "checkpoint/manifest.h"

#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

namespace tally::checkpoint {
namespace {

using testing::HasSubstr;

Manifest sample() {
  Manifest manifest{50,
                    2,
                    "0.1.0",
                    "2.11.0",
                    {{"tiny_lm", sha256("plugin")}},
                    {{sha256("first"), 0}, {sha256("second"), 20, 1}},
                    {}};
  for (const char* name : {kDataLockFile, kModelFile, kOptimizerFile, "rank-0.safetensors",
                           "rank-1.safetensors", kRecipeFile})
    manifest.files.push_back({name, 7, sha256(name)});
  return manifest;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error(const std::string& text) {
  return error_of<DataError>([&] { Manifest::from_json(text, "manifest.json"); });
}

TEST(Manifest, ComesBackFromItsTextWithTheFilesInOrder) {
  Manifest shuffled = sample();
  std::swap(shuffled.files[0], shuffled.files[4]);
  EXPECT_EQ(shuffled.to_json(), sample().to_json());
  EXPECT_EQ(Manifest::from_json(shuffled.to_json(), "manifest.json"), sample());
}

TEST(Manifest, HasALineThatSha256sumChecks) {
  EXPECT_EQ(manifest_digest_line("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  manifest.json\n");
}

TEST(Manifest, RefusesAnotherFormatBeforeItsKeys) {
  EXPECT_EQ(error(R"({"format":"tally-checkpoint/1","shape":1})"),
            "cannot use manifest.json: its format is 'tally-checkpoint/1', but this tally reads "
            "'tally-checkpoint/2'; use the tally that wrote it");
  EXPECT_THAT(error("[]"), HasSubstr("its format is 'none'"));
}

TEST(Manifest, RefusesANameThatLeavesTheFolder) {
  for (const char* name : {"../rank-1.safetensors", "/etc/passwd", "..", "a/../../b", ""}) {
    EXPECT_EQ(error(replaced(sample().to_json(), "rank-1.safetensors", name)),
              std::string("cannot use manifest.json: 'name' must be a path that stays inside the "
                          "folder, but it is \"") +
                  name + "\"; it is damaged, so take another copy");
  }
}

TEST(Manifest, RefusesFilesThatACheckpointDoesNotHave) {
  EXPECT_EQ(
      error(replaced(sample().to_json(), "rank-1.safetensors", "rank-2.safetensors")),
      "cannot use manifest.json: it names 'rank-2.safetensors', which a checkpoint of 2 ranks "
      "does not have; take another copy of the checkpoint");
  EXPECT_THAT(error(replaced(sample().to_json(), "rank-1.safetensors", "deep/file")),
              HasSubstr("it names 'deep/file'"));
  EXPECT_THAT(error(replaced(sample().to_json(), "rank-1.safetensors", "rank-0.safetensors")),
              HasSubstr("'name' must be the name of one file only"));
  for (const char* world : {"1", "3", "0", "9223372036854775807"}) {
    EXPECT_EQ(
        error(replaced(sample().to_json(), "\"world\": 2", std::string("\"world\": ") + world)),
        std::string("cannot use manifest.json: it names 6 files, but a checkpoint of ") + world +
            " ranks has 4 and one a rank; take another copy of the checkpoint");
  }
}

TEST(Manifest, RefusesAWorldOfNoRank) {
  Manifest manifest = sample();
  manifest.world = 0;
  manifest.files.erase(manifest.files.begin() + 3, manifest.files.begin() + 5);
  EXPECT_EQ(error(manifest.to_json()),
            "cannot use manifest.json: it names 4 files, but a checkpoint of 0 ranks has 4 and one "
            "a rank; take another copy of the checkpoint");
}

TEST(Manifest, RefusesValuesOfAnotherType) {
  EXPECT_THAT(error(replaced(sample().to_json(), "\"window\": 50", "\"window\": -1")),
              HasSubstr("'window' must be an integer from 0 to 2^63 - 1, but it is -1"));
  EXPECT_THAT(error(replaced(sample().to_json(), "\"window\": 50", "\"window\": 50.0")),
              HasSubstr("'window' must be an integer from 0 to 2^63 - 1, but it is 50.0"));
  EXPECT_THAT(error(replaced(sample().to_json(), "\"window\"", "\"windows\"")),
              HasSubstr("'window' is missing"));
  EXPECT_THAT(error(replaced(sample().to_json(), sha256("plugin").hex(), "ab")),
              HasSubstr("'tiny_lm' must be 64 hexadecimal digits"));
}

TEST(Manifest, RefusesALineageThatDoesNotLeadToItsWindow) {
  const auto lineage_error = [](Lineage lineage) {
    Manifest manifest = sample();
    manifest.lineage = std::move(lineage);
    return error(manifest.to_json());
  };
  for (const Lineage& lineage :
       {Lineage{}, Lineage{{sha256("a"), 1}}, Lineage{{sha256("a"), 0}, {sha256("b"), 51, 1}},
        Lineage{{sha256("a"), 0}, {sha256("b"), 30, 1}, {sha256("c"), 20, 2}},
        Lineage{{sha256("a"), 0}, {sha256("b"), 20, 1}, {sha256("c"), 30, 1}}})
    EXPECT_EQ(
        lineage_error(lineage),
        "cannot use manifest.json: 'lineage' must lead from window 0 to 50; it is damaged, so "
        "take another copy");
  EXPECT_THAT(error(replaced(sample().to_json(), "\"from\": 20", "\"from\": -20")),
              HasSubstr("'from' must be an integer from 0 to 2^63 - 1, but it is -20"));
}

TEST(Manifest, SaysWhichFileItDoesNotName) {
  EXPECT_EQ(error_of<DataError>([] { sample().file("rank-2.safetensors"); }),
            "the checkpoint after window 50 has no file 'rank-2.safetensors': it was saved by 2 "
            "ranks");
}

}  // namespace
}  // namespace tally::checkpoint
