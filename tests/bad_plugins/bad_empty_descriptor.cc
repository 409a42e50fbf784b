#include "by_hand.h"

TALLY_DESCRIPTOR_BY_HAND(sizeof(tally::PluginDescriptor), 0, tally::kStamp, "empty_descriptor",
                         "0.1.0", nullptr)
