#include "recipe/merge.h"

#include "recipe/nesting.h"
#include "recipe/toml_document.h"
#include "recipe/toml_text.h"
#include "report/text.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <charconv>
#include <utility>

namespace tally::recipe {
namespace {

void merge_value(Value& base, Value over) {
  Table* below = base.as<Table>();
  Table* above = over.as<Table>();
  if (!below || !above) {
    base = std::move(over);
    return;
  }
  merge(*below, std::move(*above));
  // A --set has no place in a file where a reader could look the section up.
  if (over.origin.source != Source::kSet) base.origin = over.origin;
}

std::vector<std::string> split_key(const std::string& set, std::string_view key) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (;;) {
    const size_t end = key.find('.', begin);
    parts.emplace_back(key.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (!is_bare_key(parts.back())) {
      throw ConfigError(fmt::format(
          "--set {}: \"{}\" is no key: write names of letters, digits, '-' and '_', joined by dots",
          report::shown(set), report::shown(key)));
    }
    if (parts.size() > static_cast<size_t>(kDeepest)) {
      throw ConfigError(fmt::format("--set {}: the key has more than {} parts, which none has",
                                    report::shown(set), kDeepest));
    }
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

/// True for a whole decimal number that neither an integer of 64 bits nor a double holds.
bool is_number_out_of_range(std::string_view text) {
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto overflows = [&](const std::from_chars_result& result) {
    return result.ec == std::errc::result_out_of_range && result.ptr == end;
  };
  int64_t integer = 0;
  double number = 0;
  return overflows(std::from_chars(text.data(), end, integer)) ||
         overflows(std::from_chars(text.data(), end, number));
}

Value parse_value(const std::string& set, const std::string& path, const std::string& text,
                  const Origin& origin) {
  if (std::optional<Value> value = parse_toml_value(text, path, origin)) return std::move(*value);
  if (is_number_out_of_range(text)) {
    throw ConfigError(
        fmt::format("--set {}: the number does not fit into 64 bits; write a text of digits in "
                    "double quotes",
                    report::shown(set)));
  }
  Value value{text, origin};
  // The resolved recipe has to load again.
  if (!parse_toml_value(inline_text(value), path, origin)) {
    throw ConfigError(fmt::format("--set {}: the value is no UTF-8 text", report::shown(set)));
  }
  return value;
}

}  // namespace

void merge(Table& base, Table over) {
  for (auto& [key, value] : over) {
    const auto found = base.find(key);
    if (found == base.end()) {
      base.emplace(key, std::move(value));
    } else {
      merge_value(found->second, std::move(value));
    }
  }
}

void apply_set(Table& root, const std::string& set, std::string_view option) {
  const Origin origin{Source::kSet, nullptr, 0, option};
  const size_t equals = set.find('=');
  if (equals == std::string::npos) {
    throw ConfigError(
        fmt::format("--set {}: there is no '=': write --set KEY=VALUE", report::shown(set)));
  }
  const std::string_view key = std::string_view(set).substr(0, equals);
  if (key.empty()) {
    throw ConfigError(
        fmt::format("--set {}: the key is empty: write --set KEY=VALUE", report::shown(set)));
  }
  const std::vector<std::string> parts = split_key(set, key);

  Table* table = &root;
  std::string path;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    path = join_path(path, parts[i]);
    Value& value = table->try_emplace(parts[i], Value{Table{}, origin}).first->second;
    table = value.as<Table>();
    if (!table) {
      throw ConfigError(fmt::format("--set {}: {} is {} ({}), not a table, and has no keys",
                                    report::shown(set), report::shown(path), type_name(value),
                                    value.origin.text()));
    }
  }
  Table last;
  last.emplace(parts.back(), parse_value(set, std::string(key), set.substr(equals + 1), origin));
  merge(*table, std::move(last));
}

}  // namespace tally::recipe
