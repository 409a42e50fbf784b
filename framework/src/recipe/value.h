#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tally::recipe {

/// Who wrote a value, strongest first: the order of precedence, and of reports. kSet: any option.
enum class Source { kSet, kRecipe, kConfig, kDefault };

struct Origin {
  Source source = Source::kDefault;
  std::shared_ptr<const std::filesystem::path> file;  ///< As the user gave it; null without a file.
  int line = 0;                                       ///< From 1; 0 without a file.
  std::string_view option = "--set";                  ///< That wrote it, for kSet; a literal.

  /// "recipes/correct.toml:7", "--set", "--ranks" or "default".
  std::string text() const;
  /// Where a relative path in the value starts: the file's folder, else the current folder.
  std::filesystem::path folder() const;
};

struct Value;
using Array = std::vector<Value>;
/// Keys are bare TOML keys, so a dotted path needs no quotes.
using Table = std::map<std::string, Value, std::less<>>;

/// A TOML value. Dates and times are left out: no option is one.
struct Value {
  std::variant<bool, int64_t, double, std::string, Array, Table> data;
  Origin origin;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(&data);
  }
};

/// With its article: "an integer", "a float", "a boolean", "a string", "an array", "a table".
std::string_view type_name(const Value& value);

/// True for `[[name]]`: at least one element, and each a table.
bool is_array_of_tables(const Value& value);

/// Letters, digits, '-' and '_', at least one of them.
bool is_bare_key(std::string_view key);

/// "sampler" and "shards" make "sampler.shards"; the root's path is empty.
std::string join_path(std::string_view path, std::string_view key);
/// "state" and 1 make "state[1]".
std::string element_path(std::string_view path, size_t index);

}  // namespace tally::recipe
