#include "checkpoint/data_lock.h"

#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

namespace tally::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DataLockTest : public testing::Test {
 protected:
  DataLockTest() {
    put(folder_ / "train.jsonl", "one\n");
    std::filesystem::create_directory(folder_ / "deep");
    put(folder_.path() / "deep" / "test.jsonl", "two!\n");
  }
  DataLock lock() const { return DataLock::of(folder_.path(), {"train.jsonl", "deep/test.jsonl"}); }

  TemporaryFolder folder_;
};

TEST_F(DataLockTest, IsTheSameTextInWhateverOrderTheFilesCome) {
  const std::string expected = R"({
  "files": [
    {
      "name": "deep/test.jsonl",
      "sha256": ")" + sha256("two!\n").hex() +
                               R"(",
      "size": 5
    },
    {
      "name": "train.jsonl",
      "sha256": ")" + sha256("one\n").hex() +
                               R"(",
      "size": 4
    }
  ],
  "format": "tally-data-lock/1"
}
)";
  EXPECT_EQ(lock().to_json(), expected);
  EXPECT_EQ(DataLock::of(folder_.path(), {"train.jsonl", "deep/test.jsonl", "train.jsonl"}),
            lock());
  EXPECT_EQ(DataLock::from_json(expected, "data.lock.json"), lock());

  const std::string reordered =
      R"({"format":"tally-data-lock/1","files":[{"name":"train.jsonl","size":4,"sha256":")" +
      sha256("one\n").hex() + R"("},{"name":"deep/test.jsonl","size":5,"sha256":")" +
      sha256("two!\n").hex() + R"("}]})";
  EXPECT_EQ(DataLock::from_json(reordered, "data.lock.json"), lock());
}

TEST_F(DataLockTest, PassesUnchangedDataAndIgnoresOtherFiles) {
  put(folder_ / "notes.txt", "mine");
  lock().check(folder_.path());
}

TEST_F(DataLockTest, ListsEveryFileThatChangedOrIsMissing) {
  const DataLock before = lock();
  put(folder_ / "train.jsonl", "0ne\n");
  std::filesystem::remove(folder_.path() / "deep" / "test.jsonl");
  EXPECT_EQ(error_of<DataError>([&] { before.check(folder_.path()); }),
            "the data in " + folder_.path().string() +
                " is not what was locked: deep/test.jsonl is missing: 5 bytes, SHA-256 " +
                sha256("two!\n").hex() + " was locked; train.jsonl changed: 4 bytes, SHA-256 " +
                sha256("one\n").hex() + " was locked, 4 bytes, SHA-256 " + sha256("0ne\n").hex() +
                " is there; restore these files, or, to use what is there, "
                "remove data.lock.json and run `tally prepare`");
}

TEST_F(DataLockTest, TellsLocksApart) {
  const DataLock both = lock();
  const DataLock one = DataLock::of(folder_.path(), {"train.jsonl"});
  EXPECT_THAT(both.differences(both), ElementsAre());
  EXPECT_THAT(one.differences(both),
              ElementsAre("deep/test.jsonl was not locked: 5 bytes, SHA-256 " +
                          sha256("two!\n").hex() + " is there"));
}

TEST_F(DataLockTest, RefusesAFileThatIsMissingOrOutside) {
  EXPECT_THAT(error_of<DataError>([&] { DataLock::of(folder_.path(), {"none"}); }),
              HasSubstr("cannot open " + (folder_ / "none").string() +
                        ": No such file or directory (ENOENT)"));
  for (const char* name : {"../train.jsonl", "./test.jsonl", ".//test.jsonl"}) {
    EXPECT_EQ(error_of<DataError>([&] { DataLock::of(folder_ / "deep", {name}); }),
              "cannot lock the data file '" + std::string(name) +
                  "': it is not named by a path inside " + (folder_ / "deep").string() +
                  "; keep all data files in that folder");
  }
}

TEST_F(DataLockTest, RefusesDamagedText) {
  const auto error = [](const std::string& text) {
    return error_of<DataError>([&] { DataLock::from_json(text, "data.lock.json"); });
  };
  const std::string digest = sha256("").hex();
  const auto with_file = [&](const std::string& file) {
    return error(R"({"format":"tally-data-lock/1","files":[)" + file + "]}");
  };
  EXPECT_EQ(error("{"),
            "cannot use data.lock.json: it is no JSON at byte 2; it is damaged, so take another "
            "copy");
  EXPECT_THAT(error("[]"), HasSubstr("'(whole)' must be an object, but it is []"));
  EXPECT_THAT(error(R"({"files":[]})"), HasSubstr("'format' is missing"));
  EXPECT_EQ(error(R"({"format":"tally-data-lock/2","files":[]})"),
            "cannot use data.lock.json: its format is 'tally-data-lock/2', but this tally reads "
            "'tally-data-lock/1'; use the tally that wrote it");
  for (const char* name : {"../a", "/a", "a/../b", "", ".", "a//b", "a/", "a\\u0000b"}) {
    EXPECT_THAT(
        with_file(R"({"name":")" + std::string(name) + R"(","size":0,"sha256":")" + digest + "\"}"),
        HasSubstr("'name' must be a path that stays inside the folder"))
        << name;
  }
  EXPECT_THAT(with_file(R"({"name":"a","size":-1,"sha256":")" + digest + "\"}"),
              HasSubstr("'size' must be an integer from 0 to 2^63 - 1, but it is -1"));
  EXPECT_THAT(with_file(R"({"name":"a","size":9223372036854775808,"sha256":")" + digest + "\"}"),
              HasSubstr("'size' must be an integer from 0 to 2^63 - 1"));
  EXPECT_THAT(with_file(R"({"name":"a","size":0,"sha256":"ab"})"),
              HasSubstr("'sha256' must be 64 hexadecimal digits, but it is \"ab\""));
  const std::string a = R"({"name":"a","size":0,"sha256":")" + digest + "\"}";
  EXPECT_THAT(with_file(a + "," + a), HasSubstr("'name' must be the name of one file only"));
}

}  // namespace
}  // namespace tally::checkpoint
