#include "files/file_reader.h"

#include "support/faulty_file_system.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tally/error.h>

namespace tally::files {
namespace {

using testing::HasSubstr;

TEST(FileReader, ReadsAndHashes) {
  TemporaryFolder folder;
  put(folder / "a", "0123456789");
  FaultyFileSystem system;
  system.interrupt = true;
  system.longest = 3;
  FileReader file(folder / "a", Links::kRefuse, system);
  std::string text(7, ' ');
  file.read(text.data(), text.size());
  EXPECT_EQ(text, "0123456");
  EXPECT_EQ(file.position(), 7);
  EXPECT_EQ(file.finish(), sha256("0123456789"));
}

TEST(FileReader, NamesAFileThatEndsEarlyOrGrows) {
  TemporaryFolder folder;
  put(folder / "a", "01234");
  FileReader file(folder / "a", Links::kRefuse);
  std::string text(8, ' ');
  EXPECT_EQ(
      error_of<DataError>([&] { file.read(text.data(), 8); }),
      "cannot read " + (folder / "a").string() +
          ": it ends after 5 bytes, 3 too early; the file is cut short, so take another copy");
  put(folder / "a", "0123456");
  EXPECT_EQ(error_of<DataError>([&] { file.finish(); }),
            "cannot read " + (folder / "a").string() +
                ": it had 5 bytes when it was opened and 7 at its end; let nothing write to it "
                "meanwhile");
}

TEST(FileReader, FollowsALinkOnlyWhereAllowed) {
  TemporaryFolder folder;
  put(folder / "a", "x");
  std::filesystem::create_symlink("a", folder / "link");
  EXPECT_EQ(FileReader(folder / "link", Links::kFollow).finish(), sha256("x"));
  EXPECT_EQ(error_of<DataError>([&] { FileReader(folder / "link", Links::kRefuse); }),
            "cannot open " + (folder / "link").string() +
                ": Too many levels of symbolic links (ELOOP); a link stands where a plain file or "
                "folder is needed: put the file itself there");
}

TEST(FileReader, NeitherReadsAFolderNorWaitsForAPipe) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of<DataError>([&] { FileReader(folder / "pipe", Links::kFollow); }),
              HasSubstr("it is no plain file"));
  EXPECT_THAT(error_of<DataError>([&] { FileReader(folder.path(), Links::kFollow); }),
              HasSubstr("it is no plain file"));
}

TEST(FileReader, NamesTheFileWhicheverCallFails) {
  TemporaryFolder folder;
  put(folder / "a", "x");
  for (size_t call = 0; call < 3; ++call) {
    FaultyFileSystem system;
    system.fail_at = call;
    EXPECT_THAT(
        error_of<DataError>([&] { FileReader(folder / "a", Links::kRefuse, system).finish(); }),
        HasSubstr((folder / "a").string() + ": Input/output error (EIO)"));
  }
}

TEST(ReadText, RefusesMoreThanItsLimit) {
  TemporaryFolder folder;
  put(folder / "a", "0123456789");
  EXPECT_EQ(read_text(folder / "a", Links::kRefuse, 10), "0123456789");
  EXPECT_EQ(error_of<DataError>([&] { read_text(folder / "a", Links::kRefuse, 9); }),
            "cannot read " + (folder / "a").string() +
                ": it has 10 bytes, but at most 9 are expected; it is not the file that its name "
                "says");
}

TEST(VerifyFile, ComparesSizeAndDigest) {
  TemporaryFolder folder;
  put(folder / "a", "abc");
  const std::string at = (folder / "a").string();
  verify_file(folder.path(), {"a", 3, sha256("abc")});
  EXPECT_EQ(error_of<DataError>([&] {
              verify_file(folder.path(), {"a", 4, sha256("abcd")});
            }),
            at + " has 3 bytes, but 4 were written; it is damaged: restore it from a copy, or use "
                 "an older one");
  EXPECT_EQ(error_of<DataError>([&] {
              verify_file(folder.path(), {"a", 3, sha256("abd")});
            }),
            at + " has the SHA-256 " + sha256("abc").hex() + ", but " + sha256("abd").hex() +
                " was written; it is damaged: restore it from a copy, or use an older one");
}

}  // namespace
}  // namespace tally::files
