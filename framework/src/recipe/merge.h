#pragma once

#include "recipe/value.h"

#include <string>

namespace tally::recipe {

/// Lays `over` on `base`: tables key by key, everything else (arrays too) as a whole.
void merge(Table& base, Table over);

/// Lays one `--set key=value` on `root`; the value is TOML, or else a string. Throws ConfigError
/// without '=', for a key that is empty, not bare or of too many parts, for a key below something
/// that is no table, and for a number that is out of range. `option`: whose origin the value gets.
void apply_set(Table& root, const std::string& set, std::string_view option = "--set");

}  // namespace tally::recipe
