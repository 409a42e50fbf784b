#include "dataset.h"

#include "support/temporary_folder.h"

#include <tally/error.h>

#include <gmock/gmock.h>

#include <sstream>

namespace tiny_lm {
namespace {

using tally::content_of;
using tally::put;
using tally::TemporaryFolder;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

constexpr char kGood[] = R"({"input_ids": [0, 1], "labels": [1, 2], "split": "train"})";

std::string example(const std::string& ids, const std::string& labels, const std::string& split) {
  return R"({"input_ids": )" + ids + R"(, "labels": )" + labels + R"(, "split": )" + split + "}";
}

std::string zeros(int count) {
  std::string text = "[0";
  for (int i = 1; i < count; ++i) text += ",0";
  return text + "]";
}

TEST(Dataset, ReadsWhatItWrote) {
  Dataset dataset;
  dataset["train"].add(std::vector<int8_t>{0, 1, 2, 3}, std::vector<int8_t>{-100, 2, 3, -100});
  dataset["train"].add(std::vector<int8_t>{3}, std::vector<int8_t>{0});
  dataset["test"].add(std::vector<int8_t>(128, 2), std::vector<int8_t>(128, -100));
  const TemporaryFolder folder;
  const auto file = folder / "data.jsonl";
  write_dataset(file, dataset);
  EXPECT_TRUE(read_dataset(file) == dataset);
  EXPECT_FALSE(std::filesystem::exists(folder / "data.jsonl.tmp"));
  EXPECT_THAT(content_of(file),
              StartsWith(R"({"input_ids":[0,1,2,3],"labels":[-100,2,3,-100],"split":"train"})"
                         "\n"));
}

TEST(Dataset, ReadsFilesOfOtherPrograms) {
  const TemporaryFolder folder;
  const Dataset dataset = read_dataset(
      put(folder / "data.jsonl",
          "\xef\xbb\xbf" + std::string(kGood) + "\r\n\n \t\r\n" +
              R"({"id": {"a": [1.5]}, "split": "validation", "labels": [-100], "input_ids": [3]})" +
              "\n" + kGood));
  ASSERT_EQ(dataset.size(), 2U);
  ASSERT_EQ(dataset.at("train").size(), 2U);
  EXPECT_THAT(dataset.at("train")[1].ids, ElementsAre(0, 1));
  EXPECT_THAT(dataset.at("train")[1].labels, ElementsAre(1, 2));
  EXPECT_THAT(dataset.at("validation")[0].labels, ElementsAre(-100));
  EXPECT_TRUE(read_dataset(put(folder / "empty.jsonl", "")).empty());
}

TEST(Dataset, NamesFileLineAndFaultOfAMalformedRecord) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"input_ids": [0, 1], "labels": [1,)", "malformed JSON at byte 36"},
      {"hello", "malformed JSON at byte 1"},
      {std::string("\0\0", 2), "malformed JSON at byte 1"},
      {"{} {}", "malformed JSON at byte 4"},
      {R"({"input_ids": [1e999]})", "malformed JSON: a number is out of range"},
      {"\"\xff\"", "malformed JSON"},
      {R"({"input_ids": [0], "labels": [0], "split": "train", "split": "test"})",
       "\"split\" stands twice in the record; leave one out"},
      {R"({"input_ids": [0], "labels": [0], "input_ids": [1], "split": "train"})",
       "\"input_ids\" stands twice"},
      {R"({"x": 1, "x": 1, "input_ids": [0], "labels": [0], "split": "train"})",
       "\"x\" stands twice"},
      {"[0, 1]", "the line is an array"},
      {"null", "the line is null"},
      {R"({"labels": [0], "split": "train"})", "input_ids is missing"},
      {R"({"input_ids": [0], "split": "train"})", "labels is missing"},
      {R"({"input_ids": [0], "labels": [0]})", "split is missing"},
      {example("[0, 4]", "[0, 0]", "\"train\""),
       "input_ids[1] is 4; a token is an integer from 0 to 3"},
      {example("[-1]", "[0]", "\"train\""), "input_ids[0] is -1"},
      {example("[-100]", "[0]", "\"train\""), "input_ids[0] is -100"},
      {example("[1.0]", "[0]", "\"train\""), "input_ids[0] is 1.0"},
      {example("[true]", "[0]", "\"train\""), "input_ids[0] is true"},
      {example("[\"0\"]", "[0]", "\"train\""), "input_ids[0] is \"0\""},
      {example("[[0]]", "[0]", "\"train\""), "input_ids[0] is an array"},
      {example("[18446744073709551615]", "[0]", "\"train\""),
       "input_ids[0] is 18446744073709551615"},
      {example("[256]", "[0]", "\"train\""), "input_ids[0] is 256"},
      {example("7", "[0]", "\"train\""), "input_ids is 7; it is an array"},
      {example("[0, 0]", "[0, 4]", "\"train\""),
       "labels[1] is 4; a token is an integer from 0 to 3, an unsupervised label is -100"},
      {example("[0]", "[-1]", "\"train\""), "labels[0] is -1"},
      {example("[0]", "{}", "\"train\""), "labels is an object; it is an array"},
      {example("[0, 1, 2]", "[0, 1]", "\"train\""),
       "input_ids has 3 values and labels 2; there is one label a token"},
      {example("[]", "[]", "\"train\""), "input_ids is empty"},
      {example(zeros(129), zeros(129), "\"train\""),
       "input_ids has 129 tokens; the model has positions for 128"},
      {example("[0]", "[0]", "\"dev\""),
       R"(split is "dev"; it is "train", "validation" or "test")"},
      {example("[0]", "[0]", "3"), "split is 3"},
      {example("[0]", "[0]", '"' + std::string(99, 'x') + '"'),
       "split is \"" + std::string(36, 'x') + "...;"},
      {std::string(size_t{1} << 21, ' '), "the line is longer than 1048576 bytes"},
      {example(std::string(400'000, '[') + std::string(400'000, ']'), "[0]", "\"train\""),
       "input_ids[0] is an array"}};
  for (const auto& [line, message] : cases) {
    for (const int before : {0, 2}) {
      const TemporaryFolder folder;
      std::string text;
      for (int i = 0; i < before; ++i) text += std::string(kGood) + "\n";
      const auto file = put(folder / "data.jsonl", text + line + "\n" + kGood + "\n");
      const std::string place = file.string() + ":" + std::to_string(before + 1) + ": ";
      EXPECT_THAT([&] { read_dataset(file); },
                  ThrowsMessage<tally::DataError>(AllOf(StartsWith(place), HasSubstr(message))))
          << line.substr(0, 80);
    }
  }
}

TEST(Dataset, RefusesAByteOrderMarkInsideTheFile) {
  const TemporaryFolder folder;
  const std::string marked = "\xef\xbb\xbf" + std::string(kGood) + "\n";
  const auto file = put(folder / "data.jsonl", marked + "\r\n" + marked);
  EXPECT_THAT(
      [&] { read_dataset(file); },
      ThrowsMessage<tally::DataError>(
          file.string() + ":3: a byte-order mark stands inside the file, as where two files "
                          "were joined; remove it"));
}

TEST(Dataset, LetsAKeyStandTwiceBelowTheRecord) {
  const TemporaryFolder folder;
  const std::string nested =
      R"({"input_ids": [0], "labels": [0], "split": "train", "m": {"a": 1, "a": 2}})";
  EXPECT_EQ(read_dataset(put(folder / "data.jsonl", nested)).at("train").size(), 1U);
}

TEST(Dataset, CountsLinesByLineFeedsAlone) {
  const TemporaryFolder folder;
  const std::string with_return = R"({"input_ids": [0],)"
                                  "\r"
                                  R"("labels": [1], "split": "train"})";
  const auto file = put(folder / "data.jsonl", with_return + "\r\n" + with_return + "\n\r\nbad");
  EXPECT_THAT([&] { read_dataset(file); },
              ThrowsMessage<tally::DataError>(StartsWith(file.string() + ":4: malformed JSON")));
  const auto joined = put(folder / "joined.jsonl", std::string(kGood) + "\r" + kGood);
  EXPECT_THAT([&] { read_dataset(joined); },
              ThrowsMessage<tally::DataError>(StartsWith(joined.string() + ":1: malformed JSON")));
}

TEST(Dataset, ReadsALineOfTheGreatestLength) {
  const TemporaryFolder folder;
  const std::string line = kGood + std::string((size_t{1} << 20) - sizeof kGood + 1, ' ');
  for (const char* end : {"", "\n"}) {
    EXPECT_EQ(read_dataset(put(folder / "data.jsonl", line + end)).at("train").size(), 1U);
  }
  EXPECT_THROW(read_dataset(put(folder / "data.jsonl", line + "  \n")), tally::DataError);
}

TEST(Dataset, GivesTheSystemsReasonWhenItCannotRead) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { read_dataset(folder / "absent.jsonl"); },
              ThrowsMessage<tally::DataError>(
                  AllOf(HasSubstr("absent.jsonl"), HasSubstr("No such file or directory"))));
  EXPECT_THAT([&] { read_dataset(folder.path()); },
              ThrowsMessage<tally::DataError>(HasSubstr("not a regular file")));
}

TEST(Dataset, GivesTheSystemsReasonWhenItCannotWriteAndLeavesNothing) {
  Dataset dataset;
  dataset["train"].add(std::vector<int8_t>{0}, std::vector<int8_t>{1});
  const TemporaryFolder folder;
  EXPECT_THAT([&] { write_dataset(folder / "absent/data.jsonl", dataset); },
              ThrowsMessage<tally::DataError>(
                  AllOf(HasSubstr("creating"), HasSubstr("No such file or directory"))));
  const auto old = put(folder / "data.jsonl", "old");
  std::filesystem::create_symlink("/dev/full", folder / "data.jsonl.tmp");
  EXPECT_THAT([&] { write_dataset(old, dataset); },
              ThrowsMessage<tally::DataError>(
                  AllOf(HasSubstr("writing"), HasSubstr("No space left on device"))));
  EXPECT_EQ(content_of(old), "old");
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(folder / "data.jsonl.tmp")));
  std::filesystem::create_directory(folder / "folder.jsonl");
  EXPECT_THAT([&] { write_dataset(folder / "folder.jsonl", dataset); },
              ThrowsMessage<tally::DataError>(HasSubstr("Is a directory")));
  EXPECT_FALSE(std::filesystem::exists(folder / "folder.jsonl.tmp"));
}

}  // namespace
}  // namespace tiny_lm
