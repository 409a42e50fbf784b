#pragma once

#include "recipe/value.h"

#include <set>

namespace tally::recipe {

/// The merged values, and which keys have been asked for. Paths are dotted, "sampler.inner" or
/// "state[1]"; "" is the root.
struct Document {
  std::filesystem::path recipe;  ///< As the user gave it.
  Table root;
  /// Keys asked for, by section.
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> asked;

  /// The table at `path`; null when nobody wrote it. Throws ConfigError when something else is
  /// there.
  Table* find_table(std::string_view path);
  /// The same; made with the origin "default" when nobody wrote it.
  Table& make_table(std::string_view path);
  /// The value at `section`.`key`; null when nobody wrote it.
  const Value* find(std::string_view section, std::string_view key);

  /// Marks `key` as known in `section`.
  void ask(std::string_view section, std::string_view key);
  /// Marks every step of the way to the section as known.
  void ask_section(std::string_view path);

  /// "recipes/correct.toml:7", or the recipe file for a section that nobody wrote and the root.
  std::string section_origin(std::string_view path);

 private:
  Value* walk(std::string_view path, bool make);
};

/// How a section is called in a file: "[sampler]", "[[state]]"; the root is "the top of the file".
std::string section_name(std::string_view path);

}  // namespace tally::recipe
