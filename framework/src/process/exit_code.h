#pragma once

namespace tally::process {

/// How the program and its ranks end. The exceptions of <tally/error.h> carry the same numbers.
enum ExitCode : int {
  kDone = 0,
  kCheckFailed = 1,  ///< A check said no.
  kUsage = 2,        ///< Command line or recipe.
  kData = 3,         ///< Data, checkpoint or disk.
  kRanks = 4,        ///< A rank lost, late or absent, or the grace time of a stop expired.
  kPlugin = 5,
  kUnforeseen = 70,
  kSignalBase = 128,  ///< 128 + n: stopped by signal n after saving.
};

}  // namespace tally::process
