#pragma once

#include <optional>
#include <string_view>

namespace tally::recipe {

/// Open brackets, or parts of a dotted key, that a recipe may have within each other. The parser
/// and all who walk the values call themselves once a level; far beyond this the stack ends.
inline constexpr int kDeepest = 32;

/// The line, from 1, of the first place of a TOML text that is nested deeper; nullopt when none is.
/// The text may be no TOML.
std::optional<int> first_line_too_deep(std::string_view text);

}  // namespace tally::recipe
