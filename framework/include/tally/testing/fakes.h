#pragma once

/// What the author of a plugin needs to test it without the host: a recipe's section, a context,
/// a policy's services, a checkpoint's state and a run, all in memory and header-only.
///
/// Include the plugin's source in the test, or put the class in a header of its own, and make the
/// hook with a FakeContext. The fakes keep the contracts of the interfaces they stand for, errors
/// included, unless their own comment says otherwise.
#include <tally/memory_state.h>
#include <tally/testing/fake_config.h>
#include <tally/testing/fake_context.h>
#include <tally/testing/fake_run.h>
#include <tally/testing/fake_sync.h>
