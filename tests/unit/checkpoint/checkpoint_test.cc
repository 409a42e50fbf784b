#include "checkpoint/checkpoint.h"

#include "sample_checkpoint.h"

#include <gmock/gmock.h>
#include <tally/error.h>

namespace tally::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(StepName, HasFourDigitsOrMore) {
  EXPECT_EQ(step_name(0), "step-0000");
  EXPECT_EQ(step_name(50), "step-0050");
  EXPECT_EQ(step_name(123456), "step-123456");
  for (const int64_t window : {0, 7, 9999, 10000, 123456})
    EXPECT_EQ(window_of_step(step_name(window)), window);
  for (const char* name : {"step-50", "step-00050", "step-", "step--050", "step-005x", "step-+050",
                           "Step-0050", ".step-0050.partial", "step-99999999999999999999"})
    EXPECT_EQ(window_of_step(name), std::nullopt) << name;
}

TEST(Checkpoint, BringsBackEveryValue) {
  TemporaryFolder folder;
  save_sample(folder / "checkpoints", 50, 7);
  EXPECT_THAT(names_in(folder / "checkpoints"), ElementsAre("step-0050"));
  const std::filesystem::path step = folder.path() / "checkpoints" / "step-0050";
  EXPECT_THAT(names_in(step),
              ElementsAre("data.lock.json", "manifest.json", "manifest.sha256", "model.safetensors",
                          "optimizer.safetensors", "rank-0.safetensors", "rank-1.safetensors",
                          "recipe.toml"));
  EXPECT_EQ(seed_of(step), 7);
  const CheckpointReader reader = CheckpointReader::open(step);
  EXPECT_EQ(reader.window(), 50);
  EXPECT_EQ(reader.world(), 2);
  EXPECT_EQ(reader.manifest().tally_version, "0.1.0");
  EXPECT_EQ(reader.manifest().torch_version, "2.11.0");
  EXPECT_EQ(reader.manifest().plugins, sample_content(7).plugins);
}

TEST(Checkpoint, IsTheSameBytesForTheSameRun) {
  TemporaryFolder folder;
  save_sample(folder / "one", 3, 7);
  save_sample(folder / "two", 3, 7);
  for (const std::string& name : names_in(folder.path() / "one" / "step-0003"))
    EXPECT_EQ(content_of(folder.path() / "one" / "step-0003" / name),
              content_of(folder.path() / "two" / "step-0003" / name))
        << name;
}

TEST(Checkpoint, ExchangesAStepThatIsThere) {
  TemporaryFolder folder;
  save_sample(folder.path(), 50, 1, 4);
  save_sample(folder.path(), 50, 2, 2);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-0050"));
  EXPECT_EQ(seed_of(folder / "step-0050"), 2);
}

TEST(Checkpoint, OpensThroughALinkAndATrailingSlash) {
  TemporaryFolder folder;
  save_sample(folder.path(), 50, 1);
  std::filesystem::create_directory_symlink("step-0050", folder / "latest");
  EXPECT_EQ(seed_of(folder / "latest"), 1);
  EXPECT_EQ(seed_of(folder / "step-0050/"), 1);
}

TEST(Checkpoint, IgnoresWhatACrashLeftInTheStagingFolder) {
  TemporaryFolder folder;
  const CheckpointWriter crashed(folder.path(), 50, 4);
  for (int64_t rank = 0; rank < 4; ++rank) crashed.write_rank_file(rank, sample_states(1, rank));
  put(crashed.staging() / "model.safetensors", "half");
  save_sample(folder.path(), 50, 2, 2);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-0050"));
  EXPECT_EQ(seed_of(folder / "step-0050"), 2);
}

TEST(Checkpoint, RefusesToPublishWithoutEveryRank) {
  TemporaryFolder folder;
  const CheckpointWriter writer(folder.path(), 50, 2);
  const files::FileEntry first = writer.write_rank_file(0, sample_states(1, 0));
  const files::FileEntry second = writer.write_rank_file(1, sample_states(1, 1));
  std::filesystem::remove(writer.staging() / "rank-1.safetensors");
  EXPECT_THAT(
      error_of<DataError>([&] {
        writer.publish(sample_content(1), {first, second});
      }),
      HasSubstr("rank-1.safetensors into " + writer.target().string() + ": a plain file of " +
                std::to_string(second.size) + " bytes was announced, but nothing is there"));
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
  EXPECT_EQ(error_of<DataError>([&] { writer.publish(sample_content(1), {first}); }),
            "cannot publish " + writer.target().string() +
                ": rank 1 of 2 did not hand in its rank-1.safetensors");
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(Checkpoint, SaysThatARankHasNoState) {
  TemporaryFolder folder;
  save_sample(folder.path(), 50, 1);
  const CheckpointReader reader = CheckpointReader::open(folder / "step-0050");
  EXPECT_EQ(error_of<DataError>([&] { reader.rank_state(2); }),
            "the checkpoint after window 50 has no file 'rank-2.safetensors': it was saved by 2 "
            "ranks");
}

TEST(FirstWhole, TakesTheHighestStepAndNamesDamagedOnes) {
  TemporaryFolder folder;
  for (const int64_t window : {9, 10000, 200, 50}) save_sample(folder.path(), window, window % 100);
  std::filesystem::create_directory(folder / "step-20000");
  std::filesystem::create_directory(folder / "step-30");
  put(folder.path() / "step-10000" / "recipe.toml", "x");
  put(folder.path() / "step-0009" / "recipe.toml", "x");
  std::vector<DamagedCheckpoint> damaged;
  const auto whole = first_whole(known_steps(folder.path(), &damaged), &damaged);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->path(), folder / "step-0200");
  ASSERT_EQ(damaged.size(), 2u);
  EXPECT_EQ(damaged[0].path, folder / "step-20000");
  EXPECT_THAT(damaged[0].reason, HasSubstr("manifest.json: No such file or directory (ENOENT)"));
  EXPECT_EQ(damaged[1].path, folder / "step-10000");
  EXPECT_THAT(damaged[1].reason, HasSubstr("recipe.toml has 1 bytes"));
}

TEST(FirstWhole, FindsNothingWhereNothingIs) {
  TemporaryFolder folder;
  std::vector<DamagedCheckpoint> damaged;
  EXPECT_EQ(known_steps(folder / "none", &damaged).size(), 0u);
  EXPECT_EQ(known_steps(folder.path(), &damaged).size(), 0u);
  EXPECT_FALSE(first_whole({}, &damaged).has_value());
  EXPECT_THAT(damaged, IsEmpty());
}

TEST(RemoveUnfinished, DeletesStagingFoldersOfStepsOnly) {
  TemporaryFolder folder;
  save_sample(folder.path(), 50, 1);
  CheckpointWriter(folder.path(), 51, 2).write_rank_file(1, sample_states(1, 1));
  std::filesystem::create_directory(folder / ".mine.partial");
  remove_unfinished(folder.path());
  remove_unfinished(folder / "none");
  EXPECT_THAT(names_in(folder.path()), ElementsAre(".mine.partial", "step-0050"));
}

}  // namespace
}  // namespace tally::checkpoint
