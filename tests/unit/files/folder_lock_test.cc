#include "files/folder_lock.h"

#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <tally/error.h>

#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>
#include <optional>
#include <string>

namespace tally::files {
namespace {

namespace fs = std::filesystem;

/// Whether another process gets the lock.
bool is_free_for_others(const fs::path& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const FolderLocks locks({folder});
      ::_exit(0);
    } catch (const DataError&) {
      ::_exit(1);
    }
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(FolderLocks, KeepOthersOutUntilTheyEnd) {
  TemporaryFolder folder;
  fs::create_directories(folder / "one");
  fs::create_directories(folder / "other");
  {
    const FolderLocks locks({folder / "one"});
    EXPECT_FALSE(is_free_for_others(folder / "one"));
    EXPECT_TRUE(is_free_for_others(folder / "other"));
    EXPECT_EQ(error_of<DataError>([&] { FolderLocks({folder / "one"}); }),
              "another tally works in " + (folder / "one").string() +
                  "; wait for its end, or give this run another name and folder");
  }
  EXPECT_TRUE(is_free_for_others(folder / "one"));
}

TEST(FolderLocks, TakeAFolderThatIsNamedTwiceOnce) {
  TemporaryFolder folder;
  fs::create_directories(folder / "one");
  fs::create_directory_symlink(folder / "one", folder / "link");
  const FolderLocks locks(
      {folder / "one", folder / "link", folder.path() / "one" / "..", folder / "one"});
  EXPECT_FALSE(is_free_for_others(folder / "link"));
  EXPECT_FALSE(is_free_for_others(folder.path()));
}

TEST(FolderLocks, LetGoOfTheFirstWhenTheSecondIsHeld) {
  TemporaryFolder folder;
  fs::create_directories(folder / "one");
  fs::create_directories(folder / "other");
  const FolderLocks locks({folder / "other"});
  EXPECT_THROW(FolderLocks({folder / "one", folder / "other"}), DataError);
  EXPECT_TRUE(is_free_for_others(folder / "one"));
}

TEST(FolderLocks, EndWithTheProcessHoweverThatEnds) {
  TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto* locks = new FolderLocks({folder.path()});
    ::_exit(locks != nullptr ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(is_free_for_others(folder.path()));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(FolderLocks, NeedTheFolder) {
  TemporaryFolder folder;
  EXPECT_THROW(FolderLocks({folder / "none"}), DataError);
}

}  // namespace
}  // namespace tally::files
