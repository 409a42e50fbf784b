#pragma once

#include "cli/verb.h"

#include <vector>

namespace tally::cli {

/// Each in a file of its name: verb_train.cc.
RunVerb declare_doctor(CLI::App& app);
RunVerb declare_prepare(CLI::App& app);
RunVerb declare_reference(CLI::App& app);
RunVerb declare_check_loss(CLI::App& app);
RunVerb declare_train(CLI::App& app);
RunVerb declare_compare(CLI::App& app);
RunVerb declare_evaluate(CLI::App& app);
RunVerb declare_exercise(CLI::App& app);
RunVerb declare_recipe(CLI::App& app);
RunVerb declare_clean(CLI::App& app);
RunVerb declare_gradients(CLI::App& app);
RunVerb declare_doctor_rank(CLI::App& app);

/// All verbs, in the order of `tally --help`.
const std::vector<Verb>& verbs();

}  // namespace tally::cli
