#include "recipe/listing.h"

#include "recipe/toml_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace tally::recipe {
namespace {

using Lines = std::vector<std::pair<std::string, const Value*>>;

void append(Lines& lines, const Table& table, const std::string& path) {
  for (const auto* entry : in_written_order(table)) {
    const std::string key = join_path(path, entry->first);
    const Value& value = entry->second;
    if (const Table* child = value.as<Table>()) {
      append(lines, *child, key);
    } else if (is_array_of_tables(value)) {
      const Array& array = *value.as<Array>();
      for (size_t i = 0; i < array.size(); ++i) {
        append(lines, *array[i].as<Table>(), element_path(key, i));
      }
    } else {
      lines.emplace_back(key, &value);
    }
  }
}

nlohmann::json to_json(const Value& value) {
  if (const bool* boolean = value.as<bool>()) return *boolean;
  if (const int64_t* integer = value.as<int64_t>()) return *integer;
  if (const double* number = value.as<double>()) {
    return std::isfinite(*number) ? nlohmann::json(*number) : nlohmann::json(inline_text(value));
  }
  if (const std::string* text = value.as<std::string>()) return *text;
  if (const Array* array = value.as<Array>()) {
    nlohmann::json result = nlohmann::json::array();
    for (const Value& element : *array) result.push_back(to_json(element));
    return result;
  }
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [key, child] : *value.as<Table>()) result[key] = to_json(child);
  return result;
}

}  // namespace

Lines flatten(const Table& root) {
  Lines lines;
  append(lines, root, "");
  return lines;
}

std::string origin_lines(const Table& root) {
  const Lines lines = flatten(root);
  size_t key_width = 0;
  size_t value_width = 0;
  for (const auto& [key, value] : lines) {
    key_width = std::max(key_width, key.size());
    value_width = std::max(value_width, inline_text(*value).size());
  }
  std::string text;
  for (const auto& [key, value] : lines) {
    text += fmt::format("{:<{}} = {:<{}}   # {}\n", key, key_width, inline_text(*value),
                        value_width, value->origin.text());
  }
  return text;
}

std::string origin_json(const Table& root) {
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  for (const auto& [key, value] : flatten(root)) {
    nlohmann::ordered_json line;
    line["key"] = key;
    line["value"] = to_json(*value);
    line["origin"] = value->origin.text();
    result.push_back(std::move(line));
  }
  return result.dump(2);
}

}  // namespace tally::recipe
