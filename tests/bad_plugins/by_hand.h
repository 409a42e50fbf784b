#pragma once

#include <tally/abi.h>

/// Writes a descriptor field by field, as a plugin would that does not use TALLY_PLUGIN.
#define TALLY_DESCRIPTOR_BY_HAND(...)               \
  extern "C" __attribute__((visibility("default"))) \
  const ::tally::PluginDescriptor tally_plugin_v1;  \
  const ::tally::PluginDescriptor tally_plugin_v1 = {__VA_ARGS__};
