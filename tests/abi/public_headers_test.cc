// Public headers include at most one header of LibTorch with code in it, so that a plugin compiles
// in seconds. Reading the #include lines of every header in the folder is enough: what one of them
// includes is the standard library, LibTorch, or another of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace {

/// What stands between <> or "" in each #include of every public header.
std::set<std::string> included_headers() {
  const std::regex line_with_include(R"(\s*#\s*include\s*([<"][^>"]*[>"]).*)");
  std::set<std::string> included;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TALLY_INCLUDE_FOLDER)) {
    std::ifstream header(entry.path());
    std::string line;
    std::smatch match;
    while (std::getline(header, line)) {
      if (std::regex_match(line, match, line_with_include)) included.insert(match[1]);
    }
  }
  return included;
}

TEST(PublicHeadersTest, IncludeOfLibTorchTheTensorAndTheVersionAlone) {
  const std::regex standard_header(R"(<[a-z_]+>)");
  const std::filesystem::path folder = TALLY_INCLUDE_FOLDER;
  std::set<std::string> others;
  for (const std::string& header : included_headers()) {
    const std::string file = header.substr(1, header.size() - 2);
    const bool ours = header.starts_with("<tally/") && std::filesystem::exists(folder / file);
    if (!ours && !std::regex_match(header, standard_header)) others.insert(header);
  }
  EXPECT_THAT(others, testing::UnorderedElementsAre("<ATen/core/Tensor.h>",
                                                    "<torch/headeronly/version.h>"));
}

}  // namespace
