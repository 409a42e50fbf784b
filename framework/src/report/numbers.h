#pragma once

#include <cstdint>
#include <string>

/// Numbers as people read them. Files and --json carry full precision instead.
namespace tally::report {

std::string grouped(int64_t value);    ///< "282,628"
std::string scientific(double value);  ///< "1.234e-07"; "0" for zero, "nan", "inf", "-inf".
std::string seconds(double value);  ///< "850 us", "12.3 ms", "4.56 s", "2 min 05 s", "3 h 02 min"
std::string bytes(int64_t value);   ///< "512 B", "1.3 MiB"
/// "1 window", "2 windows": nouns whose plural ends in s.
std::string counted(int64_t count, const std::string& noun);

}  // namespace tally::report
