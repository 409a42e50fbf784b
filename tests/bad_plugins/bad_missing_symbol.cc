#include "by_hand.h"

extern "C" tally::Hook* nobody_defines_this(tally::Context& context);
static const tally::HookEntry kHooks[] = {{"sampler/1", "missing_symbol", nobody_defines_this}};
TALLY_DESCRIPTOR_BY_HAND(sizeof(tally::PluginDescriptor), 1, tally::kStamp, "missing_symbol",
                         "0.1.0", kHooks)
