// Files that were a good plugin once, and files that never were one.
#include "plugin/library.h"
#include "recipe_text.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tally/error.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>

namespace tally::plugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class DamagedFileTest : public ::testing::Test {
 protected:
  DamagedFileTest() {
    std::ifstream stream(std::filesystem::path(TALLY_SHIPPED_PLUGINS) / "no_sync.so",
                         std::ios::binary);
    good_.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }

  std::string error() const {
    try {
      load_library(file_);
    } catch (const PluginError& error) {
      return error.what();
    }
    return "no error";
  }

  std::string error(const std::string& bytes) const {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
    return error();
  }

  /// The good plugin with the first `from` replaced by the equally long `to`.
  std::string patched(const std::string& from, const std::string& to) const {
    std::string bytes = good_;
    return bytes.replace(bytes.find(from), from.size(), to);
  }

  TestFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "damaged.so";
  const std::string plugin_ = "plugin " + file_.string();
  std::string good_;
};

TEST_F(DamagedFileTest, TheUntouchedCopyLoads) { EXPECT_EQ(error(good_), "no error"); }

TEST_F(DamagedFileTest, ATruncatedCopyIsRefusedAtEveryLength) {
  ASSERT_GT(good_.size(), 10000U);
  for (size_t length = SELFMAG; length < good_.size(); length += 1 + length / 97) {
    ASSERT_THAT(error(good_.substr(0, length)),
                StartsWith(plugin_ + " is truncated: it has " + std::to_string(length) + " bytes"))
        << "cut to " << length << " of " << good_.size() << " bytes";
  }
  EXPECT_THAT(
      error(good_.substr(0, good_.size() - 1)),
      AllOf(HasSubstr("its section header table ends at byte " + std::to_string(good_.size())),
            HasSubstr("copy or build it again")));
}

TEST_F(DamagedFileTest, ASegmentBeyondTheEndIsRefusedWithoutASectionTable) {
  std::string bytes = good_;
  constexpr size_t kTable = offsetof(Elf64_Ehdr, e_shoff);
  bytes.replace(kTable, sizeof(Elf64_Off), std::string(sizeof(Elf64_Off), '\0'));
  constexpr size_t kCount = offsetof(Elf64_Ehdr, e_shnum);
  bytes.replace(kCount, sizeof(Elf64_Half), std::string(sizeof(Elf64_Half), '\0'));
  EXPECT_THAT(error(bytes.substr(0, 8192)), HasSubstr("and its loadable segment ends at byte"));
  EXPECT_EQ(error(bytes), "no error") << "a plugin without section table is whole";
}

TEST_F(DamagedFileTest, OffsetsThatOverflowAreRefused) {
  std::string bytes = good_;
  constexpr size_t kTable = offsetof(Elf64_Ehdr, e_phoff);
  bytes.replace(kTable, sizeof(Elf64_Off), std::string(sizeof(Elf64_Off), '\xff'));
  EXPECT_THAT(error(bytes), HasSubstr("and its program header table ends at byte"));
}

TEST_F(DamagedFileTest, AnotherStampNamesBothValuesOfEachKey) {
  const std::string text =
      error(patched(";torch=2.11.0;architecture=", ";torch=2.10.9;architecturE="));
  EXPECT_THAT(
      text, AllOf(StartsWith(plugin_ + " was not built for this program: "),
                  HasSubstr("torch is 2.10.9 in the plugin and 2.11.0 here"),
                  HasSubstr("architecture is absent in the plugin and " TALLY_ARCHITECTURE " here"),
                  HasSubstr("architecturE is " TALLY_ARCHITECTURE " in the plugin and absent here"),
                  Not(HasSubstr("hook-api")), HasSubstr("rebuild it")));
}

TEST_F(DamagedFileTest, AStampWithoutItsEndIsNone) {
  EXPECT_THAT(error(patched(";end", ";enx")), StartsWith(plugin_ + " carries no tally stamp"));
}

TEST_F(DamagedFileTest, FilesThatAreNoElf) {
  EXPECT_THAT(error(""), StartsWith(plugin_ + " is an empty file"));
  EXPECT_THAT(error("#!/bin/sh\n"), StartsWith(plugin_ + " is not an ELF file"));
  EXPECT_THAT(error("\x7f"
                    "EL"),
              StartsWith(plugin_ + " is not an ELF file"));
  EXPECT_THAT(error("!<arch>\n" + good_), StartsWith(plugin_ + " is not an ELF file"));
}

TEST_F(DamagedFileTest, ElfFilesThatAreNoSharedLibraryOfOurs) {
  const std::string refused =
      plugin_ + " is an ELF file but no 64-bit little-endian shared library";
  std::string bytes = good_;
  bytes[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(error(bytes), StartsWith(refused));
  bytes = good_;
  bytes[offsetof(Elf64_Ehdr, e_type)] = ET_REL;
  EXPECT_THAT(error(bytes), StartsWith(refused));
}

TEST_F(DamagedFileTest, WhatCannotBeRead) {
  EXPECT_THAT(error(), StartsWith(plugin_ + " cannot be read: "));
  std::filesystem::create_directory(file_);
  EXPECT_THAT(error(), StartsWith(plugin_ + " cannot be read; check that it is a file"));
  std::filesystem::remove(file_);
  std::filesystem::create_symlink(folder_.path() / "nowhere", file_);
  EXPECT_THAT(error(), StartsWith(plugin_ + " cannot be read: "));
  std::filesystem::remove(file_);
  std::ofstream(file_) << good_;
  ASSERT_EQ(chmod(file_.c_str(), 0), 0);
  const uid_t user = geteuid();
  constexpr uid_t kNobody = 65534;
  if (user == 0 && seteuid(kNobody) != 0) GTEST_SKIP() << "root reads any file";
  EXPECT_THAT(error(), StartsWith(plugin_ + " cannot be read; check that it is a file"));
  ASSERT_EQ(seteuid(user), 0);
}

}  // namespace
}  // namespace tally::plugin
