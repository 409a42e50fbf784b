#pragma once

#include "distributed/groups.h"
#include "distributed/membership.h"
#include "run/settings.h"

#include <c10/core/Device.h>

namespace tally::run {

/// The device that this rank trains on: with run.device = "auto" a GPU where there is one, shared
/// when there are more ranks than GPUs. Throws ConfigError when a GPU is asked for and none is
/// there.
c10::Device choose_device(const Settings& settings, const distributed::Membership& self);

/// NCCL where every rank of this host has a GPU of its own; Gloo otherwise, on GPU tensors too.
/// Throws ConfigError for NCCL without GPUs.
distributed::Transport choose_transport(const Settings& settings,
                                        const distributed::Membership& self, c10::Device device);

/// Equal runs of this process give equal bits from now on, on a GPU too; an operation that cannot
/// throws and names itself. Before any other use of the GPU.
void make_deterministic();

/// Makes a GPU the calling thread's; nothing for the CPU.
void use_device(c10::Device device);

/// Waits for all that the calling thread has given to a GPU; nothing for the CPU.
void wait_for_device(c10::Device device);

}  // namespace tally::run
