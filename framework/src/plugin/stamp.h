#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// What can be known of a plugin file before any of its code runs.
namespace tally::plugin {

/// Throws PluginError unless `bytes` is a whole 64-bit ELF file: every loadable segment and the
/// section table lie inside it. To dlopen a truncated one ends the process with SIGBUS. `file`: for
/// the sentence.
void check_elf(std::string_view bytes, const std::filesystem::path& file);

/// The stamp in `bytes`, from its prefix to "end". Throws PluginError when there is none.
std::string find_stamp(std::string_view bytes, const std::filesystem::path& file);

/// Throws PluginError with both values of each key in which the plugin's stamp differs from
/// `host`'s, and how to rebuild.
void compare_stamps(std::string_view plugin, std::string_view host,
                    const std::filesystem::path& file);

}  // namespace tally::plugin
