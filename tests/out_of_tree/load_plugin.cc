// load_plugin FILE: loads a plugin as the host does and prints its hooks, one a line.
#include "plugin/library.h"

#include <tally/error.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: load_plugin FILE\n");
    return 2;
  }
  try {
    const tally::PluginDescriptor& plugin = *tally::plugin::load_library(argv[1]).descriptor;
    for (uint32_t i = 0; i < plugin.hook_count; ++i) {
      std::printf("%s %s: %s %s\n", plugin.name, plugin.version, plugin.hooks[i].interface,
                  plugin.hooks[i].name);
    }
    return 0;
  } catch (const tally::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
}
