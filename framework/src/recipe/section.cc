#include "recipe/section.h"

#include "recipe/document.h"
#include "recipe/file_name.h"
#include "recipe/toml_text.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tally::recipe {
namespace {

/// "sampler.shards = 2"; a table is too long to print.
std::string assignment(const std::string& path, const Value& value) {
  if (value.as<Table>() || is_array_of_tables(value)) return path;
  return fmt::format("{} = {}", path, shown(value));
}

template <class T>
Value as_default(const T& fallback) {
  return Value{fallback, Origin{}};
}

Value as_default(const std::vector<int64_t>& fallback) {
  Array array;
  for (const int64_t element : fallback) array.push_back(as_default(element));
  return Value{std::move(array), Origin{}};
}

template <class T>
std::optional<T> exactly(const Value& value) {
  const T* found = value.as<T>();
  return found ? std::optional<T>(*found) : std::nullopt;
}

std::optional<double> finite(const Value& value) {
  const double* found = value.as<double>();
  return found && std::isfinite(*found) ? std::optional<double>(*found) : std::nullopt;
}

std::optional<double> to_number(const Value& value) {
  const int64_t* integer = value.as<int64_t>();
  if (!integer) return finite(value);
  constexpr int64_t kExact = int64_t{1} << 53;  // beyond it a double skips integers
  if (*integer < -kExact || *integer > kExact) return std::nullopt;
  return static_cast<double>(*integer);
}

std::optional<std::vector<int64_t>> to_integers(const Value& value) {
  const Array* array = value.as<Array>();
  if (!array) return std::nullopt;
  std::vector<int64_t> result;
  for (const Value& element : *array) {
    const int64_t* integer = element.as<int64_t>();
    if (!integer) return std::nullopt;
    result.push_back(*integer);
  }
  return result;
}

std::string listed(const std::vector<std::string>& choices) {
  std::string result;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) result += i + 1 == choices.size() ? " or " : ", ";
    result += fmt::format("\"{}\"", choices[i]);
  }
  return result;
}

}  // namespace

Section::Section(std::shared_ptr<Document> document, std::string path)
    : document_(std::move(document)), path_(std::move(path)) {}

bool Section::has(std::string_view key) const {
  document_->ask(path_, key);
  return document_->find(path_, key) != nullptr;
}

template <class T, class Convert>
T Section::read(std::string_view key, const std::optional<T>& fallback, std::string_view wanted,
                std::string_view placeholder, Convert convert) const {
  document_->ask(path_, key);
  const Value* value = document_->find(path_, key);
  if (!value) {
    if (!fallback) reject_missing(key, placeholder);
    document_->make_table(path_).emplace(key, as_default(*fallback));
    return *fallback;
  }
  std::optional<T> result = convert(*value);
  if (!result) {
    throw ConfigError(fmt::format("{}: {} is {}, but {} was expected", value->origin.text(),
                                  assignment(join_path(path_, key), *value), type_name(*value),
                                  wanted));
  }
  return std::move(*result);
}

void Section::reject_missing(std::string_view key, std::string_view placeholder) const {
  const bool in_array = path_.find('[') != std::string::npos;
  const std::string path = join_path(path_, key);
  throw ConfigError(
      fmt::format("{}: {} is missing and has no default: write {} = {} {} {}{}", origin(), path,
                  key, placeholder, path_.empty() ? "at" : "into", section_name(path_),
                  in_array ? "" : fmt::format(", or pass --set {}={}", path, placeholder)));
}

int64_t Section::integer(std::string_view key, std::optional<int64_t> fallback) const {
  return read(key, fallback, "an integer", "INTEGER", exactly<int64_t>);
}

double Section::number(std::string_view key, std::optional<double> fallback) const {
  return read(key, fallback, "a finite number that a double holds exactly", "NUMBER", to_number);
}

bool Section::boolean(std::string_view key, std::optional<bool> fallback) const {
  return read(key, fallback, "true or false", "true|false", exactly<bool>);
}

std::string Section::text(std::string_view key, std::optional<std::string> fallback) const {
  return read(key, fallback, "a string", "\"TEXT\"", exactly<std::string>);
}

std::filesystem::path Section::path(std::string_view key,
                                    std::optional<std::filesystem::path> fallback) const {
  std::optional<std::string> text_fallback;
  if (fallback) text_fallback = fallback->string();
  const std::filesystem::path value = text(key, std::move(text_fallback));
  if (const auto fault = fault_of_path(value.native())) reject(key, *fault);
  return (std::filesystem::path(folder_of(key)) / value).lexically_normal();
}

std::vector<int64_t> Section::integers(std::string_view key,
                                       std::optional<std::vector<int64_t>> fallback) const {
  return read(key, fallback, "an array of integers", "[INTEGER, ...]", to_integers);
}

void Section::reject(std::string_view key, std::string_view why) const {
  const std::string path = join_path(path_, key);
  const Value* value = document_->find(path_, key);
  if (!value) throw ConfigError(fmt::format("{}: {}, which is not given, {}", origin(), path, why));
  if (value->origin.source == Source::kDefault) {
    throw ConfigError(
        fmt::format("{}: {} (the default) {}", origin(), assignment(path, *value), why));
  }
  throw ConfigError(fmt::format("{}: {} {}", value->origin.text(), assignment(path, *value), why));
}

std::string Section::choice(std::string_view key, std::string_view fallback,
                            const std::vector<std::string>& choices) const {
  std::string value = text(key, std::string(fallback));
  if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    reject(key, "must be " + listed(choices));
  }
  return value;
}

std::string Section::origin() const { return document_->section_origin(path_); }

std::string Section::folder_of(std::string_view key) const {
  const Value* value = document_->find(path_, key);
  return value ? value->origin.folder().string() : ".";
}

Section Section::of_root(std::string_view key) const { return Section(document_, "").child(key); }

Section Section::child(std::string_view key) const {
  const std::string path = join_path(path_, key);
  document_->ask_section(path);
  document_->find_table(path);
  return Section(document_, path);
}

}  // namespace tally::recipe
