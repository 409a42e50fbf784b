#pragma once

#include "recipe/recipe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tally::plugin {

/// A folder of its own for the running test, empty at its start and removed at its end.
class TestFolder {
 public:
  TestFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) /
            (std::string("tally-") + test->test_suite_name() + "-" + test->name());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes `text` as test.toml and loads it.
  recipe::Recipe recipe(const std::string& text) const {
    const std::filesystem::path file = path_ / "test.toml";
    std::ofstream(file) << text;
    return recipe::Recipe::load({.recipe = file, .config = {}, .sets = {}});
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tally::plugin
