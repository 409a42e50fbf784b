#pragma once

#include "distributed/board.h"

#include <cstdint>

namespace tally::distributed {

/// Turns what a collective threw into a RankError that says which rank was in which collective, and
/// what the transport said. The texts of the transports name addresses, not ranks: who is missing
/// is on the board. Must be called from a catch block.
[[noreturn]] void rethrow_from_collective(const BoardWriter& board, CollectiveKind kind,
                                          int64_t index);

/// From now on an exception that leaves a thread of the NCCL watchdog, or an abort, ends the
/// process with exit code 4 and one sentence.
void map_aborts_to_rank_errors();

}  // namespace tally::distributed
