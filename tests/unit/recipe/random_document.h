#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace tally::recipe {

/// True for what TOML writes as `[[name]]`.
inline bool is_list_of_objects(const nlohmann::json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const auto& e) { return e.is_object(); });
}

/// Values by their full key, "a.b" and "a[1].b".
inline nlohmann::json flattened(const nlohmann::json& object, const std::string& path = "") {
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [name, value] : object.items()) {
    const std::string key = path.empty() ? name : path + "." + name;
    if (value.is_object()) {
      result.update(flattened(value, key));
    } else if (is_list_of_objects(value)) {
      for (size_t i = 0; i < value.size(); ++i) {
        result.update(flattened(value[i], key + "[" + std::to_string(i) + "]"));
      }
    } else {
      result[key] = value;
    }
  }
  return result;
}

/// Random tables as JSON, and TOML text for them in every way that TOML has: it shares nothing with
/// the writer under test. Few names, so that two documents share keys.
class RandomDocument {
 public:
  explicit RandomDocument(uint32_t seed) : random_(seed) {}

  nlohmann::json table(int depth = 3) {
    nlohmann::json result = nlohmann::json::object();
    for (uint32_t i = below(5); i > 0; --i) result[key()] = value(depth);
    return result;
  }

  std::string text_of(const nlohmann::json& object) { return table_text(object, ""); }

 private:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  std::string key() {
    static const std::vector<std::string> kNames = {"a", "b", "plugin", "state", "x-1", "7", "_"};
    return kNames[below(static_cast<uint32_t>(kNames.size()))];
  }

  nlohmann::json value(int depth) {
    switch (below(depth > 0 ? 8 : 4)) {
      case 0:
        return below(2) == 0;
      case 1:
        return static_cast<int64_t>(random_()) >> below(64);
      case 2:
        return static_cast<double>(static_cast<int64_t>(random_())) * (below(2) ? 1e-30 : 1e9);
      case 3:
        return text();
      case 4:
        return list(depth - 1, false);
      case 5:
        return list(depth - 1, true);
      default:
        return table(depth - 1);
    }
  }

  nlohmann::json list(int depth, bool tables) {
    nlohmann::json result = nlohmann::json::array();
    for (uint32_t i = below(4); i > 0; --i) result.push_back(tables ? table(depth) : value(depth));
    return result;
  }

  std::string text() {
    // No '/', which would make a path of a plugin.
    static const std::string kCharacters = "abc \"'\\\n\t\x01#=[]{}.,";
    std::string result;
    for (uint32_t i = below(8); i > 0; --i) {
      result += kCharacters[below(static_cast<uint32_t>(kCharacters.size()))];
    }
    return result;
  }

  std::string string_text(const std::string& value) {
    if (value.find_first_of("'\n\x01") == std::string::npos && below(2)) return "'" + value + "'";
    return nlohmann::json(value).dump();  // JSON's escapes are TOML's
  }

  std::string value_text(const nlohmann::json& value) {
    if (value.is_string()) return string_text(value.get<std::string>());
    if (value.is_number_float()) {
      char buffer[40];
      std::snprintf(buffer, sizeof(buffer), "%.16e", value.get<double>());
      return buffer;
    }
    if (!value.is_structured()) return value.dump();
    std::string result;
    for (const auto& [name, element] : value.items()) {
      if (!result.empty()) result += ", ";
      if (value.is_object()) result += name + " = ";
      result += value_text(element);
    }
    return value.is_object() ? "{" + result + "}" : "[" + result + "]";
  }

  std::string table_text(const nlohmann::json& object, const std::string& path) {
    std::string values;
    std::string sections;
    for (const auto& [name, value] : object.items()) {
      const std::string key = path.empty() ? name : path + "." + name;
      if (value.is_object() && below(2)) {
        sections += "[" + key + "]\n" + table_text(value, key);
      } else if (is_list_of_objects(value) && below(2)) {
        for (const auto& element : value) {
          sections += " [[ " + key + " ]] # a comment\n" + table_text(element, key);
        }
      } else {
        values += name + " = " + value_text(value) + "\n";
      }
    }
    return values + sections;
  }

  std::mt19937_64 random_;
};

}  // namespace tally::recipe
