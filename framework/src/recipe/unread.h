#pragma once

#include "recipe/document.h"

#include <optional>
#include <string>
#include <vector>

namespace tally::recipe {

/// A sentence about the first key that nobody has asked for (--set before recipe before config,
/// then by line), with the nearest key that was; nullopt when every key is known.
std::optional<std::string> describe_unread(const Document& document);

/// The dotted keys that a --set wrote and nobody has asked for; a whole section as one.
std::vector<std::string> unread_sets(const Document& document);

}  // namespace tally::recipe
