#include "files/atomic_folder.h"

#include <tally/error.h>

#include <algorithm>
#include <cerrno>

namespace tally::files {

std::filesystem::path staging_of(const std::filesystem::path& target) {
  return folder_of(target) / ("." + target.filename().string() + ".partial");
}

AtomicFolder::AtomicFolder(std::filesystem::path target, Start start, FileSystem& system)
    : system_(system), target_(std::move(target)), staging_(staging_of(target_)) {
  if (start == Start::kEmpty) remove_tree(system_, staging_);
  try {
    make_folders(system_, staging_);
  } catch (...) {
    discard();
    throw;
  }
}

AtomicFolder::~AtomicFolder() {
  if (!published_) discard();
}

void AtomicFolder::discard() noexcept {
  try {
    remove_tree(system_, staging_);
  } catch (const DataError&) {
    // The error that brought us here says more, and the next save clears the rest away.
  }
}

FileEntry AtomicFolder::add(const std::string& name, const WriteFile& write) {
  FileWriter file(staging_ / name, system_);
  write(file);
  FileEntry entry = file.finish();
  names_.push_back(name);
  return entry;
}

FileEntry AtomicFolder::add(const std::string& name, std::string_view text) {
  return add(name, [text](FileWriter& file) { file.append(text); });
}

void AtomicFolder::adopt(const FileEntry& entry) {
  const std::filesystem::path path = staging_ / entry.name;
  FileSystem::Status status;
  if (system_.status(path, &status) != 0) throw_system_error("look at", path, errno);
  if (status.kind != FileSystem::Kind::kFile || status.size != entry.size)
    throw DataError("cannot take " + path.string() + " into " + target_.string() +
                    ": a plain file of " + std::to_string(entry.size) +
                    " bytes was announced, but " +
                    (status.kind == FileSystem::Kind::kAbsent ? "nothing is there"
                     : status.kind == FileSystem::Kind::kFile
                         ? "it holds " + std::to_string(status.size) + " bytes"
                         : "it is no plain file") +
                    "; all ranks must see the same folder, so put it on a shared file system");
  names_.push_back(entry.name);
}

void AtomicFolder::publish() {
  remove_strangers();
  sync_folder(system_, staging_);
  put_in_place();
}

void AtomicFolder::remove_strangers() {
  for (const std::string& name : list_folder(system_, staging_)) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end())
      remove_tree(system_, staging_ / name);
  }
}

void AtomicFolder::put_in_place() {
  // An empty folder is replaced by a plain rename; anything else gives one of three errors.
  bool exchanged = false;
  int result = system_.rename(staging_, target_);
  if (result != 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR)) {
    exchanged = true;
    result = system_.exchange(staging_, target_);
  }
  if (result != 0) throw_system_error("put in place", target_, errno);
  try {
    sync_folder(system_, folder_of(target_));
  } catch (const DataError&) {
    // The caller is told that nothing happened, so nothing may have happened.
    exchanged ? system_.exchange(staging_, target_) : system_.rename(target_, staging_);
    throw;
  }
  published_ = true;
  // Only now: until the parent is on the disk, a crash may bring the old names back.
  if (!exchanged) return;
  try {
    remove_tree(system_, staging_);
  } catch (const DataError& error) {
    throw DataError("the new " + target_.string() +
                    " is in place, but what it replaced is not gone: " + error.what());
  }
}

}  // namespace tally::files
