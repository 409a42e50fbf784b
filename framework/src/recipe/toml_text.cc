#include "recipe/toml_text.h"

#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <tuple>

namespace tally::recipe {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  // Without one of these it would load as an integer.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string array_text(const Array& array) {
  std::string result = "[";
  for (const Value& element : array) {
    if (result.size() > 1) result += ", ";
    result += inline_text(element);
  }
  return result + "]";
}

std::string table_text(const Table& table) {
  if (table.empty()) return "{}";
  std::string result;
  for (const auto* entry : in_written_order(table)) {
    result += fmt::format("{} {} = {}", result.empty() ? "{" : ",", entry->first,
                          inline_text(entry->second));
  }
  return result + " }";
}

bool is_section(const Value& value) { return value.as<Table>() || is_array_of_tables(value); }

void append_table(std::string& text, const Table& table, const std::string& path);

void append_header(std::string& text, std::string_view header) {
  if (!text.empty()) text += '\n';
  text += fmt::format("{}\n", header);
}

void append_section(std::string& text, const Value& value, const std::string& path) {
  if (const Table* table = value.as<Table>()) {
    const bool only_sections =
        !table->empty() && std::all_of(table->begin(), table->end(),
                                       [](const auto& entry) { return is_section(entry.second); });
    if (!only_sections) append_header(text, fmt::format("[{}]", path));
    append_table(text, *table, path);
    return;
  }
  for (const Value& element : *value.as<Array>()) {
    append_header(text, fmt::format("[[{}]]", path));
    append_table(text, *element.as<Table>(), path);
  }
}

void append_table(std::string& text, const Table& table, const std::string& path) {
  for (const auto* entry : in_written_order(table)) {
    const auto& [key, value] = *entry;
    if (is_section(value)) {
      append_section(text, value, join_path(path, key));
    } else {
      text += fmt::format("{} = {}\n", key, inline_text(value));
    }
  }
}

/// What a reader looks for first.
size_t lead(std::string_view key) {
  constexpr std::array<std::string_view, 8> kFirst = {
      "name", "plugin", "hook", "task", "sampler", "loss_reducer", "sync_policy", "state"};
  return static_cast<size_t>(std::find(kFirst.begin(), kFirst.end(), key) - kFirst.begin());
}

}  // namespace

std::string string_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      escaped += {'\\', c};
    } else if (c == '\n') {
      escaped += "\\n";
    } else if (c == '\t') {
      escaped += "\\t";
    } else {
      escaped += c;
    }
  }
  return '"' + report::one_line(escaped) + '"';
}

std::vector<const Table::value_type*> in_written_order(const Table& table) {
  std::vector<const Table::value_type*> entries;
  for (const auto& entry : table) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) {
    return std::make_tuple(is_section(a->second), lead(a->first)) <
           std::make_tuple(is_section(b->second), lead(b->first));
  });
  return entries;
}

std::string inline_text(const Value& value) {
  if (const bool* boolean = value.as<bool>()) return *boolean ? "true" : "false";
  if (const int64_t* integer = value.as<int64_t>()) return std::to_string(*integer);
  if (const double* number = value.as<double>()) return number_text(*number);
  if (const std::string* text = value.as<std::string>()) return string_text(*text);
  if (const Array* array = value.as<Array>()) return array_text(*array);
  return table_text(*value.as<Table>());
}

std::string shown(const Value& value) { return report::shown(inline_text(value)); }

std::string document_text(const Table& root) {
  std::string text;
  append_table(text, root, "");
  return text;
}

}  // namespace tally::recipe
