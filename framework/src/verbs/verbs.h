#pragma once

#include "cli/verb.h"

#include <vector>

namespace tally::verbs {

/// Each in a file of its name: train.cc.
cli::RunVerb declare_doctor(cli::Arguments arguments);
cli::RunVerb declare_prepare(cli::Arguments arguments);
cli::RunVerb declare_reference(cli::Arguments arguments);
cli::RunVerb declare_check_loss(cli::Arguments arguments);
cli::RunVerb declare_train(cli::Arguments arguments);
cli::RunVerb declare_compare(cli::Arguments arguments);
cli::RunVerb declare_resume_check(cli::Arguments arguments);
cli::RunVerb declare_evaluate(cli::Arguments arguments);
cli::RunVerb declare_exercise(cli::Arguments arguments);
cli::RunVerb declare_checkpoints(cli::Arguments arguments);
cli::RunVerb declare_recipe(cli::Arguments arguments);
cli::RunVerb declare_clean(cli::Arguments arguments);
cli::RunVerb declare_gradients(cli::Arguments arguments);
cli::RunVerb declare_doctor_rank(cli::Arguments arguments);

/// All verbs, in the order of `tally --help`.
const std::vector<cli::Verb>& all();

}  // namespace tally::verbs
