#pragma once

#include "recipe/value.h"

#include <string>
#include <utility>
#include <vector>

namespace tally::recipe {

/// Every value with its full key, in the order of the resolved text; arrays of plain values are one
/// value. Points into `root`.
std::vector<std::pair<std::string, const Value*>> flatten(const Table& root);

/// "key = value   # origin", in columns, one line a value.
std::string origin_lines(const Table& root);
/// [{"key": ..., "value": ..., "origin": ...}]; inf and nan, which JSON lacks, as strings.
std::string origin_json(const Table& root);

}  // namespace tally::recipe
