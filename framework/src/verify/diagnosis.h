#pragma once

#include "verify/gradient_set.h"

#include <string>

namespace tally::verify {

/// What a failing gradient looks like: fits  g = sum over ranks of a_r * (what rank r's shards
/// contribute to the reference)  by least squares and names the factors that it recognises.
std::string diagnose(const GradientSet& reference, const GradientSet& other);

}  // namespace tally::verify
