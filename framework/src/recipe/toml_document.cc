#include "recipe/toml_document.h"

#include "recipe/nesting.h"
#include "report/text.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

// Compiled here and nowhere else: the distribution's library would have to match this mode.
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace tally::recipe {
namespace {

/// Of a file, in bytes: what is larger was named by mistake.
constexpr size_t kLargest = 1 << 20;

Table convert_table(const toml::table& table, const Origin& origin, const std::string& path);

Origin at_line(const Origin& origin, const toml::source_region& region) {
  Origin result = origin;
  if (origin.file) result.line = static_cast<int>(region.begin.line);
  return result;
}

bool is_date_or_time(const toml::node& node) {
  return node.is_date() || node.is_time() || node.is_date_time();
}

Array convert_array(const toml::array& array, const Origin& origin, const std::string& path);

Value convert(const toml::node& node, const Origin& origin, const std::string& path) {
  if (const auto* value = node.as_boolean()) return {value->get(), origin};
  if (const auto* value = node.as_integer()) return {value->get(), origin};
  if (const auto* value = node.as_floating_point()) return {value->get(), origin};
  if (const auto* value = node.as_string()) return {value->get(), origin};
  if (const auto* value = node.as_array()) return {convert_array(*value, origin, path), origin};
  if (const auto* value = node.as_table()) return {convert_table(*value, origin, path), origin};
  throw ConfigError(
      fmt::format("{}: {} is a date or time, which no option is: write a string in quotes",
                  origin.text(), report::shown(path)));
}

Array convert_array(const toml::array& array, const Origin& origin, const std::string& path) {
  Array result;
  for (const toml::node& element : array) {
    result.push_back(
        convert(element, at_line(origin, element.source()), element_path(path, result.size())));
  }
  return result;
}

Table convert_table(const toml::table& table, const Origin& origin, const std::string& path) {
  Table result;
  for (auto&& [key, node] : table) {
    const Origin written = at_line(origin, key.source());
    if (!is_bare_key(key.str())) {
      throw ConfigError(
          fmt::format("{}: the key \"{}\"{} cannot be used: keys are letters, digits, '-' and '_'",
                      written.text(), report::shown(key.str()),
                      path.empty() ? "" : " in " + report::shown(path)));
    }
    result.emplace(std::string(key.str()),
                   convert(node, written, join_path(path, std::string(key.str()))));
  }
  return result;
}

std::string read_text(const std::filesystem::path& file) {
  const std::string name = report::one_line(file.string());
  std::error_code unknown;  // opening the file says it better
  if (std::filesystem::is_directory(file, unknown)) {
    throw ConfigError(fmt::format("{}: is a folder, but a TOML file was expected", name));
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text(kLargest + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.is_open() || stream.bad()) {
    throw ConfigError(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  if (text.size() > kLargest) {
    throw ConfigError(fmt::format("{}: has more than {} bytes, but a recipe or config was expected",
                                  name, kLargest));
  }
  return text;
}

[[noreturn]] void refuse_depth(const std::string& place) {
  throw ConfigError(
      fmt::format("{}: more than {} brackets or parts of a key are nested here: write it flatter",
                  place, kDeepest));
}

}  // namespace

Table read_toml_file(const std::filesystem::path& file, Source source) {
  const std::string text = read_text(file);
  Origin origin{source, std::make_shared<const std::filesystem::path>(file), 1};
  if (const auto line = first_line_too_deep(text)) {
    origin.line = *line;
    refuse_depth(origin.text());
  }
  try {
    return convert_table(toml::parse(text, std::string_view(file.native())), origin, "");
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}: is no TOML (column {}): {}",
                                  at_line(origin, error.source()).text(),
                                  error.source().begin.column, report::shown(error.description())));
  }
}

std::optional<Value> parse_toml_value(const std::string& text, const std::string& path,
                                      const Origin& origin) {
  if (first_line_too_deep(text)) refuse_depth(fmt::format("{} {}", origin.text(), path));
  constexpr std::string_view kKey = "value";
  toml::table table;
  try {
    table = toml::parse(fmt::format("{} = {}", kKey, text));
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
  // A line break in the text may have begun another key.
  const toml::node* node = table.get(kKey);
  if (table.size() != 1 || is_date_or_time(*node)) return std::nullopt;
  return convert(*node, origin, path);
}

}  // namespace tally::recipe
