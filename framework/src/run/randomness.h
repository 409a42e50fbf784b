#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace tally::run {

/// Seeds the default generators of the CPU and of `device`.
void seed_generators(uint64_t seed, c10::Device device);

/// Seed of a rank's running generators ("stream").
uint64_t stream_seed(int64_t seed, int64_t rank);

/// Seed of one pass ("keyed"): the same whichever rank runs it, and in which order.
uint64_t keyed_seed(int64_t seed, int64_t window, int64_t shard, int64_t microbatch);

}  // namespace tally::run
