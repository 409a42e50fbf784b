#include "plugin/search_path.h"

#include "plugin/hook_factory.h"
#include "recipe_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

#include <cstdlib>

namespace tally::plugin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::Throws;

class SearchPathTest : public ::testing::Test {
 protected:
  SearchPathTest() {
    for (const char* name : {"a", "b"}) {
      std::filesystem::create_directory(folder_.path() / name);
      std::ofstream(folder_.path() / name / "x.so") << name;
    }
  }

  std::filesystem::path find(const std::string& value,
                             const std::vector<std::filesystem::path>& folders) {
    const recipe::Recipe recipe = folder_.recipe("[sampler]\nplugin = \"" + value + "\"\n");
    return find_plugin(recipe.section("sampler"), folders);
  }

  TestFolder folder_;
  const std::filesystem::path a_ = folder_.path() / "a";
  const std::filesystem::path b_ = folder_.path() / "b";
};

TEST_F(SearchPathTest, TheFirstFileFoundDecides) {
  EXPECT_EQ(find("x", {a_, b_}), a_ / "x.so");
  EXPECT_EQ(find("x", {b_, a_}), b_ / "x.so");
  EXPECT_EQ(find("x", {folder_.path() / "absent", b_}), b_ / "x.so");
}

TEST_F(SearchPathTest, APathIsRelativeToItsRecipeAndNotSearched) {
  EXPECT_TRUE(std::filesystem::equivalent(find("./b/x.so", {a_}), b_ / "x.so"));
  EXPECT_EQ(find((b_ / "x.so").string(), {a_}), b_ / "x.so");
  EXPECT_THAT(
      [&] {
        find("./x.so", {a_, b_});
      },
      Throws<PluginError>(
          Property(&PluginError::what,
                   AllOf(HasSubstr("test.toml:1: plugin \"./x.so\" was not found"),
                         HasSubstr("there is no " + (folder_.path() / "x.so").string())))));
}

TEST_F(SearchPathTest, AMissingPluginIsNamedWithRecipeLineAndFolders) {
  EXPECT_THAT(
      [&] {
        find("tokn_mean", {a_, b_});
      },
      Throws<PluginError>(Property(
          &PluginError::what, AllOf(HasSubstr("test.toml:1: plugin \"tokn_mean\" was not found"),
                                    HasSubstr("searched " + a_.string() + ", " + b_.string())))));
}

TEST_F(SearchPathTest, ASectionWithoutAPluginIsTheRecipesError) {
  const recipe::Recipe recipe = folder_.recipe("[sampler]\nshards = 2\n");
  EXPECT_THAT([&] { find_plugin(recipe.section("sampler"), {a_}); },
              Throws<ConfigError>(Property(
                  &ConfigError::what, HasSubstr("test.toml:1: [sampler] names no plugin; write "
                                                "plugin = \"NAME\" in it"))));
}

TEST_F(SearchPathTest, AFileNameIsNeitherNameNorPath) {
  EXPECT_THAT([&] { find("x.so", {a_}); },
              Throws<ConfigError>(
                  Property(&ConfigError::what, HasSubstr("write it without .so, or as ./x.so"))));
  EXPECT_THAT([&] { find("", {a_}); },
              Throws<ConfigError>(Property(&ConfigError::what, HasSubstr("must not be empty"))));
  EXPECT_THAT([&] { find(".", {a_}); },
              Throws<ConfigError>(Property(
                  &ConfigError::what, HasSubstr("sampler.plugin = \".\" is a folder; write the "
                                                "NAME of a file NAME.so, or the file's path"))));
  EXPECT_THAT([&] { find("x\\u0000y", {a_}); },
              Throws<ConfigError>(Property(
                  &ConfigError::what,
                  HasSubstr("sampler.plugin = \"x\\u0000y\" must not hold \\u0000, which does not "
                            "show"))));
}

TEST_F(SearchPathTest, CommandLineThenEnvironmentThenInstallFolder) {
  ASSERT_EQ(setenv("TALLY_PLUGIN_PATH", "/one::/two", 1), 0);
  EXPECT_THAT(default_search_path({a_}),
              ElementsAre(a_, "/one", "/two", TALLY_BINARY_FOLDER "/lib/tally/plugins"));
  ASSERT_EQ(unsetenv("TALLY_PLUGIN_PATH"), 0);
  EXPECT_THAT(default_search_path({}), ElementsAre(TALLY_BINARY_FOLDER "/lib/tally/plugins"));
}

TEST_F(SearchPathTest, AFolderOfTheCommandLineMustBeOne) {
  for (const std::filesystem::path& path : {folder_.path() / "absent", a_ / "x.so"}) {
    EXPECT_THAT(
        [&] {
          default_search_path({a_, path});
        },
        Throws<ConfigError>(Property(
            &ConfigError::what, "--plugin-path " + path.string() +
                                    " is no folder; name the one that holds the plugin files")));
  }
}

}  // namespace
}  // namespace tally::plugin
