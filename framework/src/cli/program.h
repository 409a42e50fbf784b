#pragma once

#include "cli/verb.h"

#include <vector>

namespace tally::cli {

/// The whole program: parses, runs one verb, and turns what it throws into a sentence on standard
/// error and an exit code. Codes: 0 done and right, 1 a check said no, 2 usage or recipe, 3 data,
/// checkpoint or disk, 4 ranks, 5 plugin, 70 anything unforeseen, 128 + n stopped by signal n.
int run_program(int argc, char** argv, const std::vector<Verb>& verbs);

}  // namespace tally::cli
