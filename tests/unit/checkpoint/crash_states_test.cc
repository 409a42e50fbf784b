#include "checkpoint/checkpoint.h"

#include "crash_disk.h"
#include "files/atomic_file.h"
#include "sample_checkpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <map>
#include <set>

namespace tally::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;

class CrashStates : public testing::Test {
 protected:
  /// The folder of the checkpoints lies in the recorded one: it is made by the first save.
  CrashStates() : disk_(folder_ / "disk"), steps_(disk_ / "steps") { fs::create_directory(disk_); }

  /// Seeds by window of the steps that a crash left; each must be whole, or nothing may be listed.
  static std::map<int64_t, int64_t> seeds_in(const fs::path& state) {
    std::map<int64_t, int64_t> seeds;
    for (const fs::path& step : list_steps(state / "steps"))
      seeds[CheckpointReader::open(step).window()] = seed_of(step);
    return seeds;
  }

  /// A save over what the crash left works, and nothing of the crash is left then.
  static void expect_next_save_works(const fs::path& state) {
    remove_unfinished(state / "steps");
    save_sample(state / "steps", 50, 3);
    EXPECT_EQ(seed_of(state / "steps/step-0050"), 3);
    for (const std::string& name : names_in(state / "steps"))
      EXPECT_THAT(name, testing::StartsWith("step-"));
  }

  TemporaryFolder folder_;
  fs::path disk_;
  fs::path steps_;
};

TEST_F(CrashStates, AStepThatIsReplacedIsTheOldOneOrTheNewOne) {
  save_sample(steps_, 50, 1);
  CrashDisk disk(disk_);
  save_sample(steps_, 50, 2, 2, disk);
  std::map<int64_t, int64_t> seen;
  const size_t states = for_each_crash(
      disk, folder_.path(), [&](const fs::path& state, bool saved, const std::string& what) {
        SCOPED_TRACE(what);
        const std::map<int64_t, int64_t> seeds = seeds_in(state);
        ASSERT_EQ(seeds.size(), 1u);
        EXPECT_THAT(seeds.at(50), AnyOf(saved ? 2 : 1, 2));
        if (++seen[seeds.at(50)] % 16 == 0) expect_next_save_works(state);
      });
  EXPECT_GT(states, 1000u);
  EXPECT_GT(seen[1], 100);
  EXPECT_GT(seen[2], 100);
}

TEST_F(CrashStates, AFirstStepIsThereOrNot) {
  CrashDisk disk(disk_);
  save_sample(steps_, 50, 2, 2, disk);
  std::map<size_t, int64_t> seen;
  for_each_crash(disk, folder_.path(),
                 [&](const fs::path& state, bool saved, const std::string& what) {
                   SCOPED_TRACE(what);
                   const std::map<int64_t, int64_t> seeds = seeds_in(state);
                   for (const auto& [window, seed] : seeds) EXPECT_EQ(seed, 2) << window;
                   if (saved) {
                     EXPECT_EQ(seeds.size(), 1u);
                   }
                   if (++seen[seeds.size()] % 16 == 0) expect_next_save_works(state);
                 });
  EXPECT_GT(seen[0], 100);
  EXPECT_GT(seen[1], 10);
}

TEST_F(CrashStates, AnOlderStepGoesWholeAndOnlyOnceTheNewerIsThere) {
  save_sample(steps_, 40, 1);
  CrashDisk disk(disk_);
  save_sample(steps_, 50, 2, 2, disk);
  CheckpointReader::open(steps_ / "step-0050", disk);
  remove_step(steps_ / "step-0040", disk);
  for_each_crash(
      disk, folder_.path(), [&](const fs::path& state, bool saved, const std::string& what) {
        SCOPED_TRACE(what);
        const std::map<int64_t, int64_t> seeds = seeds_in(state);
        const std::map<int64_t, int64_t> old{{40, 1}};
        const std::map<int64_t, int64_t> both{{40, 1}, {50, 2}};
        const std::map<int64_t, int64_t> young{{50, 2}};
        EXPECT_TRUE(seeds == young || (!saved && (seeds == old || seeds == both)));
        std::vector<DamagedCheckpoint> damaged;
        EXPECT_TRUE(first_whole(known_steps(state / "steps", &damaged), &damaged).has_value());
        EXPECT_EQ(damaged.size(), 0u);
      });
}

TEST_F(CrashStates, AFileThatIsReplacedIsTheOldOneOrTheNewOne) {
  put(disk_ / "summary.json", "old");
  CrashDisk disk(disk_);
  files::replace_file(disk_ / "summary.json", "new content", disk);
  std::map<std::string, int64_t> seen;
  for_each_crash(disk, folder_.path(),
                 [&](const fs::path& state, bool saved, const std::string& what) {
                   SCOPED_TRACE(what);
                   const std::string content = content_of(state / "summary.json");
                   EXPECT_THAT(content, AnyOf(saved ? "new content" : "old", "new content"));
                   ++seen[content];
                 });
  EXPECT_EQ(seen.size(), 2u);
}

/// The model itself: without a sync, content and name are lost or torn independently.
TEST_F(CrashStates, AWriterWithoutSyncIsCaught) {
  put(disk_ / "summary.json", "old");
  CrashDisk disk(disk_);
  const int file = disk.open(disk_ / "new", O_WRONLY | O_CREAT, 0600);
  disk.write(file, "content", 7);
  disk.close(file);
  disk.rename(disk_ / "new", disk_ / "summary.json");
  std::set<std::string> seen;
  for_each_crash(disk, folder_.path(), [&](const fs::path& state, bool, const std::string&) {
    seen.insert(content_of(state / "summary.json"));
  });
  EXPECT_THAT(seen, testing::IsSupersetOf({"old", "", "content"}));
  EXPECT_GT(seen.size(), 3u) << "and in part";
}

}  // namespace
}  // namespace tally::checkpoint
