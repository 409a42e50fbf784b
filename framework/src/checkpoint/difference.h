#pragma once

#include "checkpoint/checkpoint.h"

#include <string>
#include <vector>

namespace tally::checkpoint {

/// What differs between two checkpoints of one model.
struct Difference {
  double max_parameter_difference =
      0.0;  ///< Largest |a - b| over all values of the model; infinite where names or shapes
            ///< differ, NaN where one is NaN.
  std::vector<std::string> sentences;  ///< One for each tensor, state and number of ranks that is
                                       ///< not the same, byte for byte.
};

/// Recipes and dates may differ. Throws DataError for a file that cannot be read.
Difference difference(const CheckpointReader& a, const CheckpointReader& b);

}  // namespace tally::checkpoint
