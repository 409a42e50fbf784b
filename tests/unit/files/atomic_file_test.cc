#include "files/atomic_file.h"

#include "support/faulty_file_system.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tally/error.h>
#include <unistd.h>

#include <stdexcept>

namespace tally::files {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

mode_t mode_of(const std::filesystem::path& path) {
  struct stat found {};
  EXPECT_EQ(stat(path.c_str(), &found), 0);
  return found.st_mode & 07777;
}

TEST(ReplaceFile, WritesAndGivesSizeAndDigest) {
  TemporaryFolder folder;
  const FileEntry entry = replace_file(folder / "a.txt", "hello\n");
  EXPECT_EQ(entry, (FileEntry{"a.txt", 6, sha256("hello\n")}));
  EXPECT_EQ(content_of(folder / "a.txt"), "hello\n");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a.txt"));
}

TEST(ReplaceFile, MakesFilesAndFoldersForTheUserAlone) {
  const mode_t mask = umask(0);
  TemporaryFolder folder;
  replace_file(folder.path() / "deep" / "er" / "a.txt", "x");
  umask(mask);
  EXPECT_EQ(mode_of(folder.path() / "deep"), 0700u);
  EXPECT_EQ(mode_of(folder.path() / "deep" / "er"), 0700u);
  EXPECT_EQ(mode_of(folder.path() / "deep" / "er" / "a.txt"), 0600u);
}

TEST(ReplaceFile, SyncsTheFileBeforeItsNameAndTheNameBeforeItReturns) {
  TemporaryFolder folder;
  FaultyFileSystem system;
  replace_file(folder / "a", "x", system);
  const std::string partial = ".a." + std::to_string(getpid()) + ".partial";
  const std::string name = folder.path().filename().string();
  EXPECT_THAT(system.calls,
              ElementsAre("status .", "remove_file " + partial, "open " + partial,
                          "write " + partial, "fsync " + partial, "close " + partial, "rename a",
                          "open " + name, "fsync " + name, "close " + name));
}

TEST(ReplaceFile, ReplacesALinkAndNotWhatItPointsTo) {
  TemporaryFolder folder;
  put(folder / "other", "old");
  std::filesystem::create_symlink("other", folder / "a");
  replace_file(folder / "a", "new");
  EXPECT_EQ(content_of(folder / "other"), "old");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "a"));
}

TEST(ReplaceFile, GoesOnAfterInterruptionsAndShortWrites) {
  TemporaryFolder folder;
  FaultyFileSystem system;
  system.interrupt = true;
  system.longest = 3;
  const FileEntry entry = replace_file(folder / "a", "0123456789", system);
  EXPECT_EQ(content_of(folder / "a"), "0123456789");
  EXPECT_EQ(entry, (FileEntry{"a", 10, sha256("0123456789")}));
}

TEST(ReplaceFile, FailsRatherThanWritingNothingForEver) {
  TemporaryFolder folder;
  FaultyFileSystem system;
  system.longest = 0;
  EXPECT_THAT(error_of<DataError>([&] { replace_file(folder / "a", "x", system); }),
              HasSubstr("Input/output error (EIO)"));
}

TEST(ReplaceFile, LeavesTheOldFileAndNothingElseWhicheverCallFails) {
  for (size_t call = 0;; ++call) {
    TemporaryFolder folder;
    replace_file(folder / "a", "old");
    FaultyFileSystem system;
    system.fail_at = call;
    std::string error;
    try {
      replace_file(folder / "a", "new", system);
    } catch (const DataError& caught) {
      error = caught.what();
    }
    if (!system.failed()) break;
    const std::string failed = system.calls[call];
    EXPECT_THAT(names_in(folder.path()), ElementsAre("a")) << failed;
    // Once renamed, the new content is there, but may not outlive a crash: an error, too.
    const bool renamed = failed == "open " + folder.path().filename().string() ||
                         failed == "fsync " + folder.path().filename().string();
    const bool harmless =
        failed == "status ." || failed == "close " + folder.path().filename().string();
    EXPECT_EQ(content_of(folder / "a"), renamed || harmless ? "new" : "old") << failed;
    if (harmless) {
      EXPECT_THAT(error, IsEmpty()) << failed;
    } else {
      EXPECT_THAT(error, HasSubstr("(EIO)")) << failed;
    }
  }
}

TEST(ReplaceFile, LeavesNothingWhenTheContentCannotBeMade) {
  TemporaryFolder folder;
  EXPECT_THROW(replace_file(folder / "a",
                            [](FileWriter& file) {
                              file.append("half");
                              throw std::runtime_error("no more");
                            }),
               std::runtime_error);
  EXPECT_THAT(names_in(folder.path()), IsEmpty());
}

TEST(ReplaceFile, NamesPathCauseAndRemedy) {
  TemporaryFolder folder;
  const std::string at = folder.path().string();
  const std::string partial = at + "/.a." + std::to_string(getpid()) + ".partial";
  const auto failing_write = [&](int error) {
    FaultyFileSystem system;
    system.error = error;
    system.fail_at = 3;
    return error_of<DataError>([&] { replace_file(folder / "a", "x", system); });
  };
  EXPECT_EQ(failing_write(ENOSPC), "cannot write " + partial +
                                       ": No space left on device (ENOSPC); free space on the "
                                       "file system of " +
                                       at + ", or choose a folder on another one");
  EXPECT_EQ(failing_write(EACCES), "cannot write " + partial +
                                       ": Permission denied (EACCES); give this user access to " +
                                       at + ", or choose another folder");
  EXPECT_EQ(failing_write(EIO), "cannot write " + partial +
                                    ": Input/output error (EIO); check the disk that holds " + at);
}

TEST(ReplaceFile, SaysThatAFileStandsWhereAFolderIsNeeded) {
  TemporaryFolder folder;
  put(folder / "a", "x");
  EXPECT_EQ(error_of<DataError>([&] { replace_file(folder.path() / "a" / "b", "x"); }),
            "cannot enter the folder " + (folder / "a").string() +
                "/: Not a directory (ENOTDIR); a file stands where a folder is needed: move it "
                "away, or choose another folder");
}

TEST(ReplaceFile, NamesTheFolderThatTheUserMayNotUse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TemporaryFolder folder;
  const std::string at = folder.path().string();
  const auto error = [&](std::filesystem::perms permissions) {
    std::filesystem::permissions(folder.path(), permissions);
    EXPECT_EQ(seteuid(65534), 0);
    const std::string text = error_of<DataError>([&] { replace_file(folder / "a", "x"); });
    EXPECT_EQ(seteuid(0), 0);
    return text;
  };
  const std::string remedy =
      ": Permission denied (EACCES); give this user access to " + at + ", or choose another folder";
  EXPECT_EQ(error(std::filesystem::perms{0700}), "cannot enter the folder " + at + "/" + remedy);
  EXPECT_EQ(error(std::filesystem::perms{0755}),
            "cannot make the file " + at + "/.a." + std::to_string(getpid()) + ".partial" + remedy);
}

TEST(MakeFolders, AcceptsALinkToAFolder) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_symlink("real", folder / "link");
  replace_file(folder.path() / "link" / "a", "x");
  EXPECT_EQ(content_of(folder.path() / "real" / "a"), "x");
}

TEST(MakeFolders, SyncsTheParentOfEachFolderThatItMakes) {
  TemporaryFolder folder;
  FaultyFileSystem system;
  make_folders(system, folder.path() / "a" / "b");
  const std::string name = folder.path().filename().string();
  EXPECT_THAT(system.calls, ElementsAre("status .", "status .", "status .", "make_folder a",
                                        "open " + name, "fsync " + name, "close " + name,
                                        "make_folder b", "open a", "fsync a", "close a"));
}

}  // namespace
}  // namespace tally::files
