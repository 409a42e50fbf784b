#pragma once

namespace tally {

/// Of the program; the hook API has a number of its own in tally/abi.h.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace tally
