#pragma once

#include "recipe/value.h"

#include <optional>

namespace tally::recipe {

/// Reads a TOML file; every value gets its line. Throws ConfigError for a file that cannot be read,
/// text that is no TOML (duplicate keys included), one that is very large or nested very deep, a
/// key that is not bare, and a date or time.
Table read_toml_file(const std::filesystem::path& file, Source source);

/// One TOML value, as it stands after `key =`; nullopt when `text` is none, and for a date or time.
/// Throws ConfigError for a key in it that is not bare, and for values nested too deep; `path` is
/// the value's own key, for that error.
std::optional<Value> parse_toml_value(const std::string& text, const std::string& path,
                                      const Origin& origin);

}  // namespace tally::recipe
