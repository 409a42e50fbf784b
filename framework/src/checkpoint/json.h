#pragma once

#include "files/file_entry.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace tally::checkpoint {

/// Parses JSON and refuses a key that an object holds twice, of which other parsers keep the last.
/// Throws DataError with `file` and the position.
nlohmann::json parse_json(std::string_view text, const std::string& file);

bool is_utf8(std::string_view text);

/// Whether a relative path names something below its folder: no component is empty, "." or "..".
bool stays_inside(const std::string& name);

/// Member access for documents that know all of their keys. Each throws DataError with file, key
/// and what was found. A number must be an integer from 0 to 2^63 - 1.
void require_keys(const nlohmann::json& object, const std::vector<std::string>& keys,
                  const std::string& file);
int64_t integer_at(const nlohmann::json& object, const std::string& key, const std::string& file);
std::string text_at(const nlohmann::json& object, const std::string& key, const std::string& file);
Digest digest_at(const nlohmann::json& object, const std::string& key, const std::string& file);

/// [{"name": ..., "sha256": ..., "size": ...}]
nlohmann::json entries_to_json(const std::vector<files::FileEntry>& entries);
/// Throws DataError for a name used twice, or one that leaves the folder: absolute, or with an
/// empty, "." or ".." component.
std::vector<files::FileEntry> entries_from_json(const nlohmann::json& array,
                                                const std::string& file);

}  // namespace tally::checkpoint
