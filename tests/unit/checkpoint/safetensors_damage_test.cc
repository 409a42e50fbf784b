#include "checkpoint/safetensors.h"

#include "sample_tensors.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <tally/error.h>

namespace tally::checkpoint {
namespace {

using testing::HasSubstr;

std::string with_header(const std::string& header, const std::string& data) {
  uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

class SafetensorsDamage : public testing::Test {
 protected:
  std::string error_of_bytes(const std::string& bytes) {
    put(folder_ / "a.safetensors", bytes);
    const std::string text =
        error_of<DataError>([&] { load_safetensors(folder_ / "a.safetensors"); });
    const std::string start = "cannot use " + (folder_ / "a.safetensors").string();
    EXPECT_THAT(text, HasSubstr((folder_ / "a.safetensors").string()));
    return text.starts_with(start) ? text.substr(start.size()) : text;
  }

  /// `entries`: what the header holds between its braces. The data: 16 zero bytes.
  std::string error_of_entries(const std::string& entries) {
    return error_of_bytes(with_header("{" + entries + "}", std::string(16, '\0')));
  }

  static std::string entry(const std::string& dtype, const std::string& shape,
                           const std::string& offsets) {
    return R"("x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}";
  }

  TemporaryFolder folder_;
};

constexpr char kRemedy[] = "; it is damaged or no safetensors file, so take another copy";

TEST_F(SafetensorsDamage, HeaderLengthBeyondTheFile) {
  const std::string tail =
      " follow and at most 100000000 are allowed; it is damaged or no safetensors file, so take "
      "another copy";
  EXPECT_EQ(error_of_bytes(std::string("\x09\0\0\0\0\0\0\0{}      ", 16)),
            ": its header is said to take 9 bytes, but 8" + tail);
  EXPECT_EQ(error_of_bytes(std::string(8, '\xff') + "{}"),
            ": its header is said to take 18446744073709551615 bytes, but 2" + tail);
}

TEST_F(SafetensorsDamage, HeaderThatIsNoJson) {
  EXPECT_EQ(error_of_bytes(with_header(" {}", "")),
            std::string(": its header does not begin with '{'") + kRemedy);
  EXPECT_EQ(error_of_bytes(with_header("", "")),
            std::string(": its header does not begin with '{'") + kRemedy);
  EXPECT_EQ(error_of_bytes(with_header("{,}", "")),
            ": it is no JSON at byte 2; it is damaged, so take another copy");
  EXPECT_THAT(error_of_bytes(with_header("{\"\xff\":1}", "")), HasSubstr("it is no JSON"));
  EXPECT_THAT(error_of_bytes(with_header("{}{}", "")), HasSubstr("it is no JSON"));
  EXPECT_THAT(error_of_bytes(with_header("{" + std::string(1 << 20, '['), "")),
              HasSubstr("it is no JSON"));
  EXPECT_EQ(error_of_bytes(with_header("{\"x\":1e999}", "")),
            ": a number in its JSON is too large; it is damaged, so take another copy");
}

TEST_F(SafetensorsDamage, NameUsedTwice) {
  EXPECT_EQ(error_of_entries(entry("F64", "[2]", "[0,16]") + "," + entry("F64", "[2]", "[0,16]")),
            ": 'x' stands in it twice; it is damaged, so take another copy");
}

TEST_F(SafetensorsDamage, EntryOfAnotherForm) {
  EXPECT_THAT(error_of_entries(R"("x":[])"),
              HasSubstr(", tensor 'x': '(whole)' must be an object, but it is []"));
  EXPECT_THAT(error_of_entries(R"("x":{"dtype":"F32","shape":[4]})"),
              HasSubstr(", tensor 'x': 'data_offsets' is missing"));
  EXPECT_THAT(error_of_entries(R"("x":{"dtype":"F32","shape":[4],"data_offsets":[0,16],"more":1})"),
              HasSubstr(", tensor 'x': 'more' must be absent, but it is 1"));
  EXPECT_THAT(error_of_entries(R"("x":{"dtype":4,"shape":[4],"data_offsets":[0,16]})"),
              HasSubstr(", tensor 'x': 'dtype' must be a text, but it is 4"));
}

TEST_F(SafetensorsDamage, UnknownDtype) {
  EXPECT_EQ(error_of_entries(entry("F8_E4M3", "[16]", "[0,16]")),
            ": tensor 'x' has the dtype 'F8_E4M3', but tally reads F64 F32 F16 BF16 I64 I32 I16 I8 "
            "U8 BOOL; convert the tensor first");
}

TEST_F(SafetensorsDamage, ShapeThatIsNone) {
  for (const char* shape : {"4", "[-4]", "[4.0]", "[\"4\"]", "[-0]", "[null]", "{}",
                            "[9223372036854775808]", "[18446744073709551616]"}) {
    EXPECT_EQ(error_of_entries(entry("F32", shape, "[0,16]")),
              std::string(": tensor 'x' has a 'shape' that is no array of whole numbers") + kRemedy)
        << shape;
  }
}

TEST_F(SafetensorsDamage, ShapeThatOverflows) {
  for (const char* shape : {"[4294967296,4294967296,4]", "[9223372036854775807]",
                            "[0,4294967296,4294967296]", "[4611686018427387904,4]"}) {
    EXPECT_EQ(error_of_entries(entry("F32", shape, "[0,16]")),
              std::string(": tensor 'x' has a shape of more than 2^63 bytes") + kRemedy)
        << shape;
  }
}

TEST_F(SafetensorsDamage, OffsetsThatDoNotFit) {
  const auto error = [&](const std::string& shape, const std::string& offsets) {
    return error_of_entries(entry("F32", shape, offsets));
  };
  EXPECT_EQ(error("[4]", "[0]"),
            std::string(": tensor 'x' has 'data_offsets' that are no begin and end") + kRemedy);
  EXPECT_EQ(error("[4]", "[16,0]"),
            std::string(": tensor 'x' has 'data_offsets' that are no begin and end") + kRemedy);
  EXPECT_EQ(error("[5]", "[0,20]"),
            std::string(": tensor 'x' lies at bytes 0 to 20, but the file holds 16") + kRemedy);
  EXPECT_EQ(
      error("[3]", "[0,16]"),
      std::string(": tensor 'x' lies at bytes 0 to 16, but its dtype and shape take 12") + kRemedy);
  EXPECT_EQ(
      error("[0]", "[0,16]"),
      std::string(": tensor 'x' lies at bytes 0 to 16, but its dtype and shape take 0") + kRemedy);
}

TEST_F(SafetensorsDamage, HolesOverlapsAndTrailingBytes) {
  const auto two = [&](const std::string& first, const std::string& second) {
    return error_of_entries(entry("U8", "[8]", first) + R"(,"y":{"dtype":"U8","shape":[8],)" +
                            R"("data_offsets":)" + second + "}");
  };
  EXPECT_EQ(two("[0,8]", "[7,15]"),
            std::string(": tensor 'y' begins at byte 7, but the one before ends at 8") + kRemedy);
  EXPECT_EQ(two("[0,8]", "[0,8]"),
            std::string(": tensor 'y' begins at byte 0, but the one before ends at 8") + kRemedy);
  EXPECT_EQ(error_of_entries(entry("F32", "[3]", "[4,16]")),
            std::string(": tensor 'x' begins at byte 4, but the one before ends at 0") + kRemedy);
  EXPECT_EQ(error_of_entries(entry("F32", "[3]", "[0,12]")),
            std::string(": 4 bytes follow the last tensor") + kRemedy);
  EXPECT_EQ(error_of_entries(""), std::string(": 16 bytes follow the last tensor") + kRemedy);
}

TEST_F(SafetensorsDamage, BoolThatIsNeither) {
  EXPECT_EQ(error_of_bytes(with_header("{" + entry("BOOL", "[2]", "[0,2]") + "}", "\x01\x02")),
            ": tensor 'x' is BOOL but has a byte other than 0 and 1; it is damaged, so take "
            "another copy");
}

TEST_F(SafetensorsDamage, MetadataThatIsNoText) {
  EXPECT_EQ(error_of_bytes(with_header(R"({"__metadata__":{"a":1}})", "")),
            std::string(": its metadata 'a' is no text") + kRemedy);
  EXPECT_EQ(error_of_bytes(with_header(R"({"__metadata__":[]})", "")),
            std::string(": its '__metadata__' is no object") + kRemedy);
}

TEST_F(SafetensorsDamage, EveryLengthThatIsTooShort) {
  save_safetensors(folder_ / "good", {{"x", at::arange(3)}, {"y", at::ones({5}, at::kBool)}});
  const std::string good = content_of(folder_ / "good");
  for (size_t size = 0; size < good.size(); ++size) error_of_bytes(good.substr(0, size));
  EXPECT_THAT(error_of_bytes(good + '\0'), HasSubstr("1 bytes follow the last tensor"));
}

// A file alone does not show every flip (the manifest's digests do), but none may end otherwise
// than in tensors or a DataError.
TEST_F(SafetensorsDamage, NoFlipCrashes) {
  std::mt19937_64 random(3);
  save_safetensors(folder_ / "good",
                   {{"x", at::arange(3)}, {"y", at::ones({2, 0, 5})}, {"z", at::ones({7})}},
                   {{"key", "value"}});
  const std::string good = content_of(folder_ / "good");
  int refused = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    std::string bytes = good;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    put(folder_ / "a.safetensors", bytes);
    try {
      load_safetensors(folder_ / "a.safetensors");
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tally::checkpoint
