#include "recipe/value.h"

#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tally::recipe {

std::string Origin::text() const {
  if (source == Source::kSet) return std::string(option);
  if (!file) return "default";
  return fmt::format("{}:{}", report::one_line(file->string()), line);
}

std::filesystem::path Origin::folder() const {
  return file && file->has_parent_path() ? file->parent_path() : std::filesystem::path(".");
}

std::string_view type_name(const Value& value) {
  switch (value.data.index()) {
    case 0:
      return "a boolean";
    case 1:
      return "an integer";
    case 2:
      return "a float";
    case 3:
      return "a string";
    case 4:
      return "an array";
    default:
      return "a table";
  }
}

bool is_array_of_tables(const Value& value) {
  const Array* array = value.as<Array>();
  return array && !array->empty() &&
         std::all_of(array->begin(), array->end(),
                     [](const Value& element) { return element.as<Table>() != nullptr; });
}

bool is_bare_key(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

std::string join_path(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

std::string element_path(std::string_view path, size_t index) {
  return fmt::format("{}[{}]", path, index);
}

}  // namespace tally::recipe
