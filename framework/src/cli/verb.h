#pragma once

#include "cli/arguments.h"
#include "cli/terminal.h"

#include <functional>

namespace tally::cli {

/// Runs a verb whose options are parsed; returns the exit code.
using RunVerb = std::function<int(const Terminal&)>;

/// A verb of the program: declares its options on `arguments` and returns what to run.
struct Verb {
  const char* name;
  const char* summary;
  RunVerb (*declare)(Arguments arguments);
  bool hidden = false;  ///< For the program's own use: the ranks of another verb.
};

}  // namespace tally::cli
