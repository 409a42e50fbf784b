#pragma once

#include <tally/config.h>
#include <tally/error.h>

#include <initializer_list>
#include <map>
#include <set>
#include <utility>
#include <variant>

namespace tally::testing {

/// A recipe's section made of values:
///
///     FakeConfig config{{"layers", 2}, {"dropout", 0.1}, {"causal", true}, {"data", "a.jsonl"}};
///
/// Errors are ConfigErrors, with "test" in the place of file and line.
class FakeConfig final : public Config {
 public:
  using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;

  FakeConfig() = default;
  FakeConfig(std::initializer_list<std::pair<const std::string, Value>> values) : values_(values) {}

  bool has(std::string_view key) const override { return find(key) != nullptr; }

  int64_t integer(std::string_view key,
                  std::optional<int64_t> fallback = std::nullopt) const override {
    return get<int64_t>(key, std::move(fallback), "an integer");
  }

  double number(std::string_view key,
                std::optional<double> fallback = std::nullopt) const override {
    if (const Value* value = find(key); value != nullptr) {
      if (const auto* integer = std::get_if<int64_t>(value)) return static_cast<double>(*integer);
    }
    return get<double>(key, std::move(fallback), "a number");
  }

  bool boolean(std::string_view key, std::optional<bool> fallback = std::nullopt) const override {
    return get<bool>(key, std::move(fallback), "true or false");
  }

  std::string text(std::string_view key,
                   std::optional<std::string> fallback = std::nullopt) const override {
    return get<std::string>(key, std::move(fallback), "a string");
  }

  /// As it stands: a test has no file that a path could be relative to.
  std::filesystem::path path(std::string_view key, std::optional<std::filesystem::path> fallback =
                                                       std::nullopt) const override {
    std::optional<std::string> text_fallback;
    if (fallback) text_fallback = fallback->string();
    std::string value = text(key, std::move(text_fallback));
    if (value.empty()) reject(key, "must name a file or folder");
    return value;
  }

  std::vector<int64_t> integers(std::string_view key, std::optional<std::vector<int64_t>> fallback =
                                                          std::nullopt) const override {
    return get<std::vector<int64_t>>(key, std::move(fallback), "an array of integers");
  }

  [[noreturn]] void reject(std::string_view key, std::string_view why) const override {
    throw ConfigError("test: " + std::string(key) + " " + std::string(why));
  }

  /// Keys that were given and that nobody has asked for, sorted: the host calls them unknown.
  std::vector<std::string> unread() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : values_) {
      if (!asked_.contains(key)) keys.push_back(key);
    }
    return keys;
  }

 private:
  const Value* find(std::string_view key) const {
    asked_.emplace(key);
    const auto found = values_.find(std::string(key));
    return found == values_.end() ? nullptr : &found->second;
  }

  template <class T>
  T get(std::string_view key, std::optional<T> fallback, const char* what) const {
    const Value* value = find(key);
    if (value == nullptr) {
      if (!fallback) reject(key, std::string("is missing; give it ") + what);
      return *std::move(fallback);
    }
    if (!std::holds_alternative<T>(*value)) reject(key, std::string("must be ") + what);
    return std::get<T>(*value);
  }

  std::map<std::string, Value> values_;
  mutable std::set<std::string> asked_;
};

}  // namespace tally::testing
