#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace tally::recipe {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`, no character
/// edited twice (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the smallest distance, the first by name among equals; nullopt when more than
/// a third of the longer word would have to change, because such a guess misleads.
std::optional<std::string> nearest(std::string_view word,
                                   const std::set<std::string, std::less<>>& candidates);

}  // namespace tally::recipe
