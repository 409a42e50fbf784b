#include "by_hand.h"

#include <tally/hook.h>

// Declared a sampler, made as nothing but a hook.
static tally::Hook* create(tally::Context& /*context*/) { return new tally::Hook; }
static const tally::HookEntry kHooks[] = {{"sampler/1", "interface", create}};
TALLY_DESCRIPTOR_BY_HAND(sizeof(tally::PluginDescriptor), 1, tally::kStamp, "interface", "0.1.0",
                         kHooks)
