#include "by_hand.h"

static tally::Hook* create(tally::Context& /*context*/) { return nullptr; }
static const tally::HookEntry kHooks[] = {{"sampler/1", nullptr, create}};
TALLY_DESCRIPTOR_BY_HAND(sizeof(tally::PluginDescriptor), 1, tally::kStamp, "nameless_hook",
                         "0.1.0", kHooks)
