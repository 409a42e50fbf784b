#pragma once

#include "verify/gradient_set.h"

#include <string>
#include <vector>

namespace tally::verify {

/// When a gradient counts as the reference's: |g - r| <= absolute + relative * |r| for every value.
struct Tolerance {
  double absolute = 1e-6;
  double relative = 1e-4;
  double relative_floor = 1e-6;  ///< Smallest denominator of a relative error.
};

/// One recipe's gradients against the reference, over all windows.
struct Parity {
  std::string recipe;
  int64_t values = 0;
  double max_abs_error = 0.0;
  double max_rel_error = 0.0;  ///< max of |g - r| / max(|r|, relative_floor)
  double max_reference = 0.0;  ///< max of |r|
  int64_t out_of_tolerance = 0;
  bool pass = false;
  std::string diagnosis;  ///< When it fails: which error the numbers look like.
};

/// Throws ConfigError when the two were not computed from the same data, windows and parameters.
Parity compare_gradients(const GradientSet& reference, const GradientSet& other,
                         const Tolerance& tolerance = {});

}  // namespace tally::verify
