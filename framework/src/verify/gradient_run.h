#pragma once

#include "run/rank_session.h"
#include "verify/gradient_set.h"

namespace tally::verify {

/// Computes the gradients of the first `windows` windows from the initial weights, by the very loop
/// that trains, without any update. Checks that all ranks hold the same gradients. The result is
/// complete on rank 0; by_shard is filled when one rank runs all shards. [trainer, every rank]
GradientSet compute_gradients(run::RankSession& session, int64_t windows);

}  // namespace tally::verify
