#include "files/atomic_folder.h"

#include "support/faulty_file_system.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

namespace tally::files {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void publish(const std::filesystem::path& target, const std::string& content,
             FileSystem& system = FileSystem::real()) {
  AtomicFolder folder(target, AtomicFolder::Start::kEmpty, system);
  folder.add("one", content);
  folder.add("two", content);
  folder.publish();
}

TEST(AtomicFolder, PublishesWhatWasAdded) {
  TemporaryFolder folder;
  publish(folder / "step", "x");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step"));
  EXPECT_THAT(names_in(folder / "step"), ElementsAre("one", "two"));
  EXPECT_EQ(std::filesystem::status(folder / "step").permissions(),
            std::filesystem::perms::owner_all);
}

TEST(AtomicFolder, ExchangesWhatIsThere) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "step" / "deep");
  put(folder.path() / "step" / "deep" / "old", "old");
  publish(folder / "step", "new");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step"));
  EXPECT_THAT(names_in(folder / "step"), ElementsAre("one", "two"));
}

TEST(AtomicFolder, ReplacesALinkAndNotWhatItPointsTo) {
  TemporaryFolder folder;
  publish(folder / "other", "old");
  std::filesystem::create_directory_symlink("other", folder / "step");
  publish(folder / "step", "new");
  EXPECT_EQ(content_of(folder.path() / "other" / "one"), "old");
  EXPECT_EQ(content_of(folder.path() / "step" / "one"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "step"));
}

TEST(AtomicFolder, SyncsEveryFileThenTheFolderThenTheParentAndOnlyThenDeletesTheOld) {
  TemporaryFolder folder;
  publish(folder / "step", "old");
  FaultyFileSystem system;
  publish(folder / "step", "new", system);
  const std::string name = folder.path().filename().string();
  const std::string staging = ".step.partial";
  EXPECT_THAT(
      system.calls,
      ElementsAre("status " + staging, "status .", "status .", "make_folder " + staging,
                  "open " + name, "fsync " + name, "close " + name,                      //
                  "remove_file one", "open one", "write one", "fsync one", "close one",  //
                  "remove_file two", "open two", "write two", "fsync two", "close two",  //
                  "list " + staging, "open " + staging, "fsync " + staging, "close " + staging,
                  "rename step", "exchange step", "open " + name, "fsync " + name, "close " + name,
                  "status " + staging, "list " + staging, "status one", "remove_file one",
                  "status two", "remove_file two", "remove_folder " + staging));
}

TEST(AtomicFolder, LeavesTheOldFolderAloneWhicheverCallFails) {
  for (size_t call = 0;; ++call) {
    TemporaryFolder folder;
    publish(folder / "step", "old");
    FaultyFileSystem system;
    system.fail_at = call;
    std::string error;
    try {
      publish(folder / "step", "new", system);
    } catch (const DataError& caught) {
      error = caught.what();
    }
    if (!system.failed()) break;
    const bool is_new = content_of(folder.path() / "step" / "one") == "new";
    EXPECT_THAT(names_in(folder / "step"), ElementsAre("one", "two")) << system.calls[call];
    EXPECT_EQ(content_of(folder.path() / "step" / "two"), is_new ? "new" : "old");
    const bool in_place = error.find("is in place") != std::string::npos;
    EXPECT_EQ(is_new, error.empty() || in_place) << system.calls[call] << ": " << error;
    if (!in_place) {
      EXPECT_THAT(names_in(folder.path()), ElementsAre("step")) << system.calls[call];
    }
  }
}

TEST(AtomicFolder, LeavesNothingOfAFirstFolderWhicheverCallFails) {
  for (size_t call = 0;; ++call) {
    TemporaryFolder folder;
    FaultyFileSystem system;
    system.fail_at = call;
    bool threw = false;
    try {
      publish(folder / "step", "new", system);
    } catch (const DataError&) {
      threw = true;
    }
    if (!system.failed()) break;
    if (threw) {
      EXPECT_THAT(names_in(folder.path()), IsEmpty()) << system.calls[call];
    } else {
      EXPECT_THAT(names_in(folder / "step"), ElementsAre("one", "two")) << system.calls[call];
    }
  }
}

TEST(AtomicFolder, ClearsTheRestOfACrash) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / ".step.partial" / "deep");
  put(folder.path() / ".step.partial" / "one", "from a crash");
  publish(folder / "step", "new");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step"));
  EXPECT_EQ(content_of(folder.path() / "step" / "one"), "new");
}

TEST(AtomicFolder, AdoptsWhatOthersWroteAndDropsWhatNobodyNamed) {
  TemporaryFolder folder;
  const std::filesystem::path staging = staging_of(folder / "step");
  std::filesystem::create_directory(staging);
  put(staging / "rank", "12345");
  put(staging / "stale", "x");
  AtomicFolder shared(folder / "step", AtomicFolder::Start::kShared);
  shared.adopt({"rank", 5, {}});
  shared.publish();
  EXPECT_THAT(names_in(folder / "step"), ElementsAre("rank"));
  EXPECT_EQ(content_of(folder.path() / "step" / "rank"), "12345");
}

TEST(AtomicFolder, RefusesToAdoptWhatIsNotThere) {
  TemporaryFolder folder;
  AtomicFolder shared(folder / "step", AtomicFolder::Start::kShared);
  put(shared.staging() / "short", "x");
  std::filesystem::create_symlink("short", shared.staging() / "link");
  EXPECT_EQ(error_of<DataError>([&] {
              shared.adopt({"rank", 5, {}});
            }),
            "cannot take " + (shared.staging() / "rank").string() + " into " +
                (folder / "step").string() +
                ": a plain file of 5 bytes was announced, but nothing is there; all ranks must "
                "see the same folder, so put it on a shared file system");
  EXPECT_THAT(error_of<DataError>([&] {
                shared.adopt({"short", 5, {}});
              }),
              HasSubstr("but it holds 1 bytes"));
  EXPECT_THAT(error_of<DataError>([&] {
                shared.adopt({"link", 5, {}});
              }),
              HasSubstr("but it is no plain file"));
}

}  // namespace
}  // namespace tally::files
