#include "by_hand.h"

#include <tally/error.h>

static tally::Hook* out_of_range(tally::Context& /*context*/) {
  throw std::out_of_range("no such row");
}
static tally::Hook* data(tally::Context& /*context*/) {
  throw tally::DataError("words.txt is missing");
}
static tally::Hook* integer(tally::Context& /*context*/) { throw 7; }
static const tally::HookEntry kHooks[] = {
    {"sampler/1", "out_of_range", out_of_range},
    {"sampler/1", "data", data},
    {"sampler/1", "integer", integer},
};
TALLY_DESCRIPTOR_BY_HAND(sizeof(tally::PluginDescriptor), 3, tally::kStamp, "throwing_hook",
                         "0.1.0", kHooks)
