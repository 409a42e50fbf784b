#pragma once

#include "run/job.h"
#include "save/beginning.h"

namespace tally::verbs {

/// Throws ConfigError for a key of --allow that neither the job's recipe has nor that of a
/// checkpoint it may go on from: it would allow nothing, and nobody would notice.
void require_known_keys(const run::Job& job, const save::Wish& wish);

}  // namespace tally::verbs
