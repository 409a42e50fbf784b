#pragma once

/// The whole public API.
#include <tally/abi.h>
#include <tally/config.h>
#include <tally/context.h>
#include <tally/error.h>
#include <tally/hook.h>
#include <tally/loss_reducer.h>
#include <tally/memory_state.h>
#include <tally/plugin.h>
#include <tally/sampler.h>
#include <tally/state_provider.h>
#include <tally/sync_policy.h>
#include <tally/task.h>
#include <tally/types.h>
