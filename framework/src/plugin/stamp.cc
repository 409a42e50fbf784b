#include "plugin/stamp.h"

#include <elf.h>
#include <tally/error.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <set>

namespace tally::plugin {
namespace {

constexpr std::string_view kPrefix = "tally-stamp:";
constexpr std::string_view kEnd = ";end";
constexpr size_t kLongestStamp = 1024;

/// Copies, because a file's bytes need not be aligned. REQUIRES: the header lies inside `bytes`.
template <class T>
T header_at(std::string_view bytes, uint64_t offset) {
  T header;
  std::memcpy(&header, bytes.data() + offset, sizeof header);
  return header;
}

/// Where a table or segment ends; the largest number when the sum overflows.
uint64_t end_of(uint64_t offset, uint64_t size) {
  return size > UINT64_MAX - offset ? UINT64_MAX : offset + size;
}

void require_inside(std::string_view bytes, uint64_t end, const char* what,
                    const std::filesystem::path& file) {
  if (end <= bytes.size()) return;
  throw PluginError("plugin " + file.string() + " is truncated: it has " +
                    std::to_string(bytes.size()) + " bytes and its " + what + " ends at byte " +
                    std::to_string(end) + "; copy or build it again");
}

std::map<std::string, std::string> fields_of(std::string_view stamp) {
  std::map<std::string, std::string> fields;
  stamp.remove_prefix(kPrefix.size());
  while (!stamp.empty()) {
    const std::string_view field = stamp.substr(0, stamp.find(';'));
    stamp.remove_prefix(std::min(stamp.size(), field.size() + 1));
    const size_t equals = field.find('=');
    if (equals != std::string_view::npos) {
      fields.emplace(field.substr(0, equals), field.substr(equals + 1));
    }
  }
  return fields;
}

std::string value_of(const std::map<std::string, std::string>& fields, const std::string& key) {
  const auto found = fields.find(key);
  return found == fields.end() ? "absent" : found->second;
}

}  // namespace

void check_elf(std::string_view bytes, const std::filesystem::path& file) {
  if (bytes.empty()) {
    throw PluginError("plugin " + file.string() + " is an empty file; copy or build it again");
  }
  if (!bytes.starts_with(std::string_view(ELFMAG, SELFMAG))) {
    throw PluginError("plugin " + file.string() +
                      " is not an ELF file; a plugin is a shared library built with "
                      "tally_add_plugin()");
  }
  require_inside(bytes, sizeof(Elf64_Ehdr), "ELF header", file);
  const auto elf = header_at<Elf64_Ehdr>(bytes, 0);
  if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_ident[EI_DATA] != ELFDATA2LSB ||
      elf.e_type != ET_DYN || elf.e_phentsize != sizeof(Elf64_Phdr)) {
    throw PluginError("plugin " + file.string() +
                      " is an ELF file but no 64-bit little-endian shared library; build it with "
                      "tally_add_plugin()");
  }
  const uint64_t segments_size = uint64_t{elf.e_phnum} * sizeof(Elf64_Phdr);
  require_inside(bytes, end_of(elf.e_phoff, segments_size), "program header table", file);
  for (uint64_t i = 0; i < elf.e_phnum; ++i) {
    const auto segment = header_at<Elf64_Phdr>(bytes, elf.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_LOAD) {
      require_inside(bytes, end_of(segment.p_offset, segment.p_filesz), "loadable segment", file);
    }
  }
  const uint64_t sections_size = uint64_t{elf.e_shnum} * elf.e_shentsize;
  require_inside(bytes, end_of(elf.e_shoff, sections_size), "section header table", file);
}

std::string find_stamp(std::string_view bytes, const std::filesystem::path& file) {
  for (size_t begin = bytes.find(kPrefix); begin != std::string_view::npos;
       begin = bytes.find(kPrefix, begin + 1)) {
    std::string_view stamp = bytes.substr(begin, kLongestStamp);
    stamp = stamp.substr(0, stamp.find('\0'));
    if (stamp.ends_with(kEnd)) return std::string(stamp);
  }
  throw PluginError("plugin " + file.string() +
                    " carries no tally stamp, so it is a shared library but no tally plugin; "
                    "declare its hooks with TALLY_PLUGIN and build it with tally_add_plugin()");
}

void compare_stamps(std::string_view plugin, std::string_view host,
                    const std::filesystem::path& file) {
  if (plugin == host) return;
  const auto theirs = fields_of(plugin);
  const auto ours = fields_of(host);
  std::set<std::string> keys;
  for (const auto& [key, value] : theirs) keys.insert(key);
  for (const auto& [key, value] : ours) keys.insert(key);
  std::string differences;
  for (const std::string& key : keys) {
    const std::string their_value = value_of(theirs, key);
    const std::string our_value = value_of(ours, key);
    if (their_value == our_value) continue;
    differences += differences.empty() ? "" : "; ";
    differences += key + " is " + their_value + " in the plugin and " + our_value + " here";
  }
  if (differences.empty()) differences = "the order of the stamp's keys differs";
  throw PluginError("plugin " + file.string() + " was not built for this program: " + differences +
                    "; rebuild it with tally_add_plugin() against this program's build folder "
                    "(-Dtally_DIR=BUILD_FOLDER)");
}

}  // namespace tally::plugin
