#include "checkpoint/checkpoint.h"

#include "sample_checkpoint.h"
#include "support/faulty_file_system.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <tally/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tally::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointFault : public testing::TestWithParam<int> {};

// The step is saved anew, and one call of that save fails: each call in turn.
TEST_P(CheckpointFault, LeavesTheOldStepOrTheNewOneWhicheverCallFails) {
  TemporaryFolder folder;
  size_t failures = 0;
  for (size_t call = 0;; ++call) {
    save_sample(folder.path(), 50, 1);
    FaultyFileSystem system;
    system.fail_at = call;
    system.error = GetParam();
    std::string error;
    try {
      save_sample(folder.path(), 50, 2, 2, system);
    } catch (const DataError& caught) {
      error = caught.what();
    }
    if (!system.failed()) break;
    const bool in_place = error.find("is in place") != std::string::npos;
    failures += error.empty() ? 0 : 1;
    EXPECT_EQ(seed_of(folder / "step-0050"), error.empty() || in_place ? 2 : 1)
        << system.calls[call] << ": " << error;
    // What the exchange left is deleted by discard().
    EXPECT_THAT(names_in(folder.path()), ElementsAre("step-0050")) << system.calls[call];
  }
  EXPECT_GT(failures, 60u);
}

INSTANTIATE_TEST_SUITE_P(Errors, CheckpointFault, testing::Values(EIO, ENOSPC));

TEST(CheckpointFaults, SavesThroughInterruptionsAndShortWrites) {
  TemporaryFolder folder;
  FaultyFileSystem system;
  system.interrupt = true;
  system.longest = 11;
  save_sample(folder.path(), 50, 3, 2, system);
  EXPECT_EQ(seed_of(folder / "step-0050"), 3);
}

TEST(CheckpointFaults, NamesTheFileThatCannotBeReadWhicheverReadFails) {
  TemporaryFolder folder;
  save_sample(folder.path(), 50, 1);
  for (size_t call = 0;; ++call) {
    FaultyFileSystem system;
    system.fail_at = call;
    std::string error;
    try {
      CheckpointReader::open(folder / "step-0050", system);
    } catch (const DataError& caught) {
      error = caught.what();
    }
    if (!system.failed()) break;
    if (!system.calls[call].starts_with("close")) {
      EXPECT_THAT(error, HasSubstr("Input/output error (EIO)")) << system.calls[call];
    }
  }
}

/// Mounts a file system of 96 KiB that only this process sees; empty, or why that is impossible.
std::string mount_small_disk(const std::filesystem::path& folder) {
  if (unshare(CLONE_NEWNS) != 0) return std::string("unshare: ") + std::strerror(errno);
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return std::string("private mounts: ") + std::strerror(errno);
  if (mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=96k") != 0)
    return std::string("mount: ") + std::strerror(errno);
  return "";
}

TEST(CheckpointFaults, AFullDiskLeavesTheOldStep) {
  TemporaryFolder folder;
  const std::filesystem::path disk = folder / "disk";
  std::filesystem::create_directory(disk);
  const std::string reason = mount_small_disk(disk);
  if (!reason.empty()) GTEST_SKIP() << "cannot mount a small tmpfs here: " << reason;
  save_sample(disk, 50, 1);
  const CheckpointWriter writer(disk, 60, 1);
  const files::FileEntry rank_file = writer.write_rank_file(0, sample_states(2, 0));
  CheckpointContent large = sample_content(2);
  large.model.push_back({"large", at::zeros({1 << 16})});
  EXPECT_EQ(error_of<DataError>([&] { writer.publish(large, {rank_file}); }),
            "cannot write " + (writer.staging() / "model.safetensors").string() +
                ": No space left on device (ENOSPC); free space on the file system of " +
                writer.staging().string() + ", or choose a folder on another one");
  EXPECT_THAT(names_in(disk), ElementsAre("step-0050"));
  EXPECT_EQ(seed_of(disk / "step-0050"), 1);
  umount(disk.c_str());
}

}  // namespace
}  // namespace tally::checkpoint
