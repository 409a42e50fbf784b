#include "by_hand.h"

static const tally::HookEntry kHooks[] = {{"sampler/1", "never_counted", nullptr}};
TALLY_DESCRIPTOR_BY_HAND(sizeof(tally::PluginDescriptor), 0, tally::kStamp, "empty_descriptor",
                         "0.1.0", kHooks)
