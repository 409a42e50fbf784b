#pragma once

#include <string>
#include <string_view>

/// The rank's log: one line a message with time and rank, on standard error (the launcher points it
/// at the rank's log file).
namespace tally::log {

/// What stands in front of every line from now on: "rank 1", or nothing. [before other threads
/// start]
void set_origin(const std::string& origin);

/// [any thread]
void info(std::string_view message);
void warning(std::string_view message);
void error(std::string_view message);

}  // namespace tally::log
