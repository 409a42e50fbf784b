#pragma once

#include "run/rank_session.h"

namespace tally::train {

/// Measures what the sync policy divides by: rank r sends r + 1 everywhere through the policy in a
/// window of one pass, and every rank must then hold W(W + 1) / 2 / divisor. The buckets of this
/// window are thrown away afterwards, and the policy is made anew. Throws PluginError on every
/// rank, naming both values. Returns the divisor. [trainer, every rank]
int64_t measure_divisor(run::RankSession& session);

}  // namespace tally::train
