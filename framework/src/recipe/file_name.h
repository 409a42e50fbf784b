#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tally::recipe {

/// What is wrong with a text that must be the name of one file or folder, here and on another
/// machine, as the rest of a sentence that begins with the text: "must not hold '/'". nullopt when
/// nothing is.
std::optional<std::string> fault_of_name(std::string_view text);

/// The same for a text that must name a file or folder somewhere.
std::optional<std::string> fault_of_path(std::string_view text);

}  // namespace tally::recipe
