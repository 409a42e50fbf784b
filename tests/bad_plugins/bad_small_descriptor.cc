#include "by_hand.h"

static const tally::HookEntry kHooks[] = {{"sampler/1", "x", nullptr}};
TALLY_DESCRIPTOR_BY_HAND(sizeof(tally::PluginDescriptor) - 8, 1, tally::kStamp, "small_descriptor",
                         "0.1.0", kHooks)
