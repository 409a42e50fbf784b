#include "checkpoint/checkpoint.h"

#include "sample_checkpoint.h"

#include <gmock/gmock.h>
#include <tally/error.h>

#include <cstdlib>

namespace tally::checkpoint {
namespace {

using testing::HasSubstr;

/// tests/long/state.sh asks for more than the default.
int64_t bit_flips() {
  const char* wanted = std::getenv("TALLY_BIT_FLIPS");
  return wanted == nullptr ? 1000 : std::stoll(wanted);
}

class CheckpointDamage : public testing::Test {
 protected:
  CheckpointDamage() : step_(folder_ / "step-0050") {
    save_sample(folder_.path(), 50, 1);
    for (const std::string& name : names_in(step_)) files_[name] = content_of(step_ / name);
  }

  std::string error() {
    return error_of<DataError>([&] { CheckpointReader::open(step_); });
  }

  /// Writes a manifest and the digest that goes with it, as an attacker or a wrong tool would.
  void sign(const std::string& manifest) {
    put(step_ / "manifest.json", manifest);
    put(step_ / "manifest.sha256", manifest_digest_line(manifest));
  }

  Manifest manifest() const { return Manifest::from_json(files_.at("manifest.json"), "manifest"); }

  TemporaryFolder folder_;
  std::filesystem::path step_;
  std::map<std::string, std::string> files_;
};

TEST_F(CheckpointDamage, EveryBitFlipIsDetectedAndTheFileNamed) {
  std::mt19937_64 random(5);
  std::vector<std::string> names;
  for (const auto& [name, content] : files_) names.push_back(name);
  for (int64_t trial = 0; trial < bit_flips(); ++trial) {
    const std::string& name = names[random() % names.size()];
    std::string content = files_[name];
    const size_t byte = random() % content.size();
    content[byte] ^= static_cast<char>(1 << random() % 8);
    put(step_ / name, content);
    EXPECT_THAT(error(), HasSubstr(name)) << "byte " << byte;
    put(step_ / name, files_[name]);
  }
  EXPECT_EQ(seed_of(step_), 1);
}

TEST_F(CheckpointDamage, EveryShorterLengthIsDetectedAndTheFileNamed) {
  for (const auto& [name, content] : files_) {
    for (size_t size = 0; size < content.size(); ++size) {
      put(step_ / name, content.substr(0, size));
      EXPECT_THAT(error(), HasSubstr(name)) << size;
    }
    put(step_ / name, content + " ");
    EXPECT_THAT(error(), HasSubstr(name)) << "one byte more";
    put(step_ / name, content);
  }
}

TEST_F(CheckpointDamage, SwappedFiles) {
  std::filesystem::rename(step_ / "rank-0.safetensors", step_ / "x");
  std::filesystem::rename(step_ / "rank-1.safetensors", step_ / "rank-0.safetensors");
  std::filesystem::rename(step_ / "x", step_ / "rank-1.safetensors");
  EXPECT_THAT(error(), HasSubstr((step_ / "rank-0.safetensors").string() + " has "));
}

TEST_F(CheckpointDamage, MissingFile) {
  for (const auto& [name, content] : files_) {
    std::filesystem::remove(step_ / name);
    EXPECT_THAT(error(), testing::StartsWith(name.starts_with("manifest")
                                                 ? "cannot open " + (step_ / name).string()
                                                 : (step_ / name).string() + " is missing"));
    put(step_ / name, content);
  }
}

TEST_F(CheckpointDamage, ExtraFile) {
  for (const char* name : {"notes.txt", ".hidden", "rank-2.safetensors"}) {
    put(step_ / name, "x");
    EXPECT_EQ(error(), (step_ / name).string() +
                           " does not belong to the checkpoint: its manifest does not name it; "
                           "move it out of the folder");
    std::filesystem::remove(step_ / name);
  }
}

TEST_F(CheckpointDamage, LinkInPlaceOfAFile) {
  for (const auto& [name, content] : files_) {
    put(folder_ / "elsewhere", content);
    std::filesystem::remove(step_ / name);
    std::filesystem::create_symlink(folder_ / "elsewhere", step_ / name);
    EXPECT_EQ(error(), "cannot open " + (step_ / name).string() +
                           ": Too many levels of symbolic links (ELOOP); a link stands where a "
                           "plain file or folder is needed: put the file itself there");
    std::filesystem::remove(step_ / name);
    put(step_ / name, content);
  }
}

TEST_F(CheckpointDamage, FolderInPlaceOfAFile) {
  std::filesystem::remove(step_ / "recipe.toml");
  std::filesystem::create_directory(step_ / "recipe.toml");
  EXPECT_EQ(error(), "cannot read " + (step_ / "recipe.toml").string() +
                         ": it is no plain file; put the file itself there");
}

TEST_F(CheckpointDamage, ManifestThatLeavesTheFolder) {
  put(folder_ / "recipe.toml", files_["recipe.toml"]);
  Manifest changed = manifest();
  for (files::FileEntry& entry : changed.files) {
    if (entry.name == "recipe.toml") entry.name = "../recipe.toml";
  }
  sign(changed.to_json());
  EXPECT_EQ(error(), "cannot use " + (step_ / "manifest.json").string() +
                         ": 'name' must be a path that stays inside the folder, but it is "
                         "\"../recipe.toml\"; it is damaged, so take another copy");
}

TEST_F(CheckpointDamage, StaleManifest) {
  save_sample(folder_.path(), 50, 2);
  put(step_ / "manifest.json", files_["manifest.json"]);
  EXPECT_THAT(error(),
              HasSubstr("manifest.json has the SHA-256 " + sha256(files_["manifest.json"]).hex() +
                        ", but manifest.sha256 does not say so"));
  put(step_ / "manifest.sha256", files_["manifest.sha256"]);
  EXPECT_THAT(error(), HasSubstr("safetensors has the SHA-256"));
}

TEST_F(CheckpointDamage, FilesOfAnotherStep) {
  save_sample(folder_.path(), 60, 2);
  for (const auto& [name, content] : files_) {
    if (name.starts_with("manifest") || name == "data.lock.json") continue;
    put(step_ / name, content_of(folder_.path() / "step-0060" / name));
    EXPECT_THAT(error(), HasSubstr((step_ / name).string())) << name;
    put(step_ / name, content);
  }
}

TEST_F(CheckpointDamage, FolderNamedAfterAnotherWindow) {
  std::filesystem::rename(step_, folder_ / "step-0060");
  step_ = folder_ / "step-0060";
  EXPECT_EQ(error(), (step_ / "manifest.json").string() +
                         " is of window 50, but its folder is named step-0060; give the folder its "
                         "old name, step-0050");
}

TEST_F(CheckpointDamage, RankFileOfAnotherRankUnderASignedManifest) {
  put(step_ / "rank-1.safetensors", files_["rank-0.safetensors"]);
  Manifest changed = manifest();
  for (files::FileEntry& entry : changed.files) {
    if (entry.name == "rank-1.safetensors")
      entry = {entry.name, static_cast<int64_t>(files_["rank-0.safetensors"].size()),
               sha256(files_["rank-0.safetensors"])};
  }
  sign(changed.to_json());
  const CheckpointReader reader = CheckpointReader::open(step_);
  EXPECT_EQ(error_of<DataError>([&] { reader.rank_state(1); }),
            (step_ / "rank-1.safetensors").string() +
                " was not saved by rank 1 of 2 after window 50; take another copy of the "
                "checkpoint");
}

TEST_F(CheckpointDamage, ChangeAfterTheCheckpointWasOpened) {
  const CheckpointReader reader = CheckpointReader::open(step_);
  for (const auto& [name, content] : files_) {
    std::string changed = content;
    changed.back() ^= 1;
    put(step_ / name, changed);
  }
  const auto named = [&](const char* name) {
    return HasSubstr((step_ / name).string() + " has the");
  };
  EXPECT_THAT(error_of<DataError>([&] { reader.model(); }), named("model.safetensors"));
  EXPECT_THAT(error_of<DataError>([&] { reader.optimizer(); }), named("optimizer.safetensors"));
  EXPECT_THAT(error_of<DataError>([&] { reader.rank_state(1); }), named("rank-1.safetensors"));
  EXPECT_THAT(error_of<DataError>([&] { reader.recipe(); }), named("recipe.toml"));
  EXPECT_THAT(error_of<DataError>([&] { reader.data_lock(); }), named("data.lock.json"));
}

}  // namespace
}  // namespace tally::checkpoint
