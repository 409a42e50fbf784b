#include "checkpoint/json.h"

#include <tally/error.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace tally::checkpoint {
namespace {

using Json = nlohmann::json;

/// Watches the keys of each object that is open.
class DuplicateKeys {
 public:
  explicit DuplicateKeys(const std::string& file) : file_(file) {}

  bool operator()(Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key && !open_.back().insert(value.get<std::string>()).second)
      throw DataError("cannot use " + file_ + ": '" + value.get<std::string>() +
                      "' stands in it twice; it is damaged, so take another copy");
    return true;
  }

 private:
  const std::string& file_;
  std::vector<std::set<std::string>> open_;
};

[[noreturn]] void refuse(const std::string& file, const std::string& key, const char* expected,
                         const Json& found) {
  throw DataError("cannot use " + file + ": '" + key + "' must be " + expected + ", but it is " +
                  found.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80) +
                  "; it is damaged, so take another copy");
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file) {
  try {
    DuplicateKeys watch(file);
    return Json::parse(text, [&watch](int /*depth*/, Json::parse_event_t event, Json& value) {
      return watch(event, value);
    });
  } catch (const Json::parse_error& error) {
    throw DataError("cannot use " + file + ": it is no JSON at byte " + std::to_string(error.byte) +
                    "; it is damaged, so take another copy");
  } catch (const Json::out_of_range&) {
    throw DataError("cannot use " + file +
                    ": a number in its JSON is too large; it is damaged, so take another copy");
  }
}

bool is_utf8(std::string_view text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

bool stays_inside(const std::string& name) {
  // Not by std::filesystem::path, which drops empty components.
  size_t begin = 0;
  while (true) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.find('\0') != part.npos) return false;
    if (end == name.size()) return true;
    begin = end + 1;
  }
}

void require_keys(const Json& object, const std::vector<std::string>& keys,
                  const std::string& file) {
  if (!object.is_object()) refuse(file, "(whole)", "an object", object);
  for (const std::string& key : keys) {
    if (!object.contains(key))
      throw DataError("cannot use " + file + ": '" + key +
                      "' is missing; it is damaged, so take another copy");
  }
  for (const auto& [key, value] : object.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) refuse(file, key, "absent", value);
  }
}

int64_t integer_at(const Json& object, const std::string& key, const std::string& file) {
  const Json& value = object.at(key);
  // An unsigned value above 2^63 - 1 comes out negative.
  if (!value.is_number_integer() || value.get<int64_t>() < 0)
    refuse(file, key, "an integer from 0 to 2^63 - 1", value);
  return value.get<int64_t>();
}

std::string text_at(const Json& object, const std::string& key, const std::string& file) {
  const Json& value = object.at(key);
  if (!value.is_string()) refuse(file, key, "a text", value);
  return value.get<std::string>();
}

Digest digest_at(const Json& object, const std::string& key, const std::string& file) {
  try {
    return Digest::from_hex(text_at(object, key, file));
  } catch (const DataError&) {
    refuse(file, key, "64 hexadecimal digits", object.at(key));
  }
}

Json entries_to_json(const std::vector<files::FileEntry>& entries) {
  Json array = Json::array();
  for (const files::FileEntry& entry : entries)
    array.push_back({{"name", entry.name}, {"size", entry.size}, {"sha256", entry.digest.hex()}});
  return array;
}

std::vector<files::FileEntry> entries_from_json(const Json& array, const std::string& file) {
  if (!array.is_array()) refuse(file, "files", "an array", array);
  std::vector<files::FileEntry> entries;
  std::set<std::string> names;
  for (const Json& element : array) {
    require_keys(element, {"name", "sha256", "size"}, file);
    files::FileEntry entry;
    entry.name = text_at(element, "name", file);
    if (!stays_inside(entry.name))
      refuse(file, "name", "a path that stays inside the folder", element.at("name"));
    if (!names.insert(entry.name).second)
      refuse(file, "name", "the name of one file only", element.at("name"));
    entry.size = integer_at(element, "size", file);
    entry.digest = digest_at(element, "sha256", file);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace tally::checkpoint
