#pragma once

#include "cli/verb.h"

#include <vector>

namespace tally::cli {

/// Each in a file of its name: verb_train.cc.
RunVerb declare_doctor(Arguments arguments);
RunVerb declare_prepare(Arguments arguments);
RunVerb declare_reference(Arguments arguments);
RunVerb declare_check_loss(Arguments arguments);
RunVerb declare_train(Arguments arguments);
RunVerb declare_compare(Arguments arguments);
RunVerb declare_resume_check(Arguments arguments);
RunVerb declare_evaluate(Arguments arguments);
RunVerb declare_exercise(Arguments arguments);
RunVerb declare_checkpoints(Arguments arguments);
RunVerb declare_recipe(Arguments arguments);
RunVerb declare_clean(Arguments arguments);
RunVerb declare_gradients(Arguments arguments);
RunVerb declare_doctor_rank(Arguments arguments);

/// All verbs, in the order of `tally --help`.
const std::vector<Verb>& verbs();

}  // namespace tally::cli
