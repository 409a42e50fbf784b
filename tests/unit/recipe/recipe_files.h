#pragma once

#include "recipe/recipe.h"

#include <gtest/gtest.h>
#include <tally/error.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace tally::recipe {

/// A test inside a new folder, which is the current one: recipes are named by relative paths, as a
/// user names them, and messages show these.
class RecipeFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    std::string pattern = (std::filesystem::temp_directory_path() / "recipe_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = std::filesystem::canonical(pattern);
    std::filesystem::current_path(folder_);
  }

  void TearDown() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

  static void write(const std::filesystem::path& file, const std::string& text) {
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }

  /// A recipe of its own in recipes/x.toml.
  static Recipe load_text(const std::string& text, std::vector<std::string> sets = {}) {
    write("recipes/x.toml", text);
    return Recipe::load({"recipes/x.toml", std::nullopt, std::move(sets)});
  }

  /// The text of the ConfigError that `action` throws.
  template <class Action>
  static std::string error_of(Action action) {
    try {
      action();
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.exit_code(), 2);
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path folder_;

 private:
  std::filesystem::path before_;
};

}  // namespace tally::recipe
