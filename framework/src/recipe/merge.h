#pragma once

#include "recipe/value.h"

#include <string>

namespace tally::recipe {

/// Lays `over` on `base`: tables key by key, everything else (arrays too) as a whole.
void merge(Table& base, Table over);

/// Lays one `--set key=value` on `root`; the value is TOML, or else a string. Throws ConfigError
/// without '=', for a key that is empty or not bare, and for a key below something that is no
/// table.
void apply_set(Table& root, const std::string& set);

}  // namespace tally::recipe
