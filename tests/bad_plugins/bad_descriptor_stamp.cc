#include "by_hand.h"

// The file carries the right stamp, the descriptor points at another text.
extern "C" __attribute__((used)) const char* const right_stamp = tally::kStamp;
static const tally::HookEntry kHooks[] = {{"sampler/1", "x", nullptr}};
TALLY_DESCRIPTOR_BY_HAND(sizeof(tally::PluginDescriptor), 1, "another stamp", "descriptor_stamp",
                         "0.1.0", kHooks)
