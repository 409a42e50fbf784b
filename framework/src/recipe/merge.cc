#include "recipe/merge.h"

#include "recipe/toml_document.h"
#include "recipe/toml_text.h"

#include <fmt/format.h>
#include <tally/error.h>

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
          set, key));
    }
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

Value parse_value(const std::string& set, const std::string& path, const std::string& text) {
  if (std::optional<Value> value = parse_toml_value(text, path)) return std::move(*value);
  Value value{text, Origin{Source::kSet, nullptr, 0}};
  // The resolved recipe has to load again.
  if (!parse_toml_value(inline_text(value), path)) {
    throw ConfigError(fmt::format("--set {}: the value is no UTF-8 text", set));
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

void apply_set(Table& root, const std::string& set) {
  const size_t equals = set.find('=');
  if (equals == std::string::npos) {
    throw ConfigError(fmt::format("--set {}: there is no '=': write --set KEY=VALUE", set));
  }
  const std::string_view key = std::string_view(set).substr(0, equals);
  if (key.empty()) {
    throw ConfigError(fmt::format("--set {}: the key is empty: write --set KEY=VALUE", set));
  }
  const std::vector<std::string> parts = split_key(set, key);

  Table* table = &root;
  std::string path;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    path = join_path(path, parts[i]);
    Value& value = table->try_emplace(parts[i], Value{Table{}, Origin{Source::kSet, nullptr, 0}})
                       .first->second;
    table = value.as<Table>();
    if (!table) {
      throw ConfigError(fmt::format("--set {}: {} is {} ({}), not a table, and has no keys", set,
                                    path, type_name(value), value.origin.text()));
    }
  }
  Table last;
  last.emplace(parts.back(), parse_value(set, std::string(key), set.substr(equals + 1)));
  merge(*table, std::move(last));
}

}  // namespace tally::recipe
