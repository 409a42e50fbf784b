#pragma once

#include "files/file_entry.h"
#include "files/file_system.h"

#include <filesystem>
#include <functional>
#include <string_view>

namespace tally::files {

/// A new file (mode 0600), written from front to back and hashed on the way. Every member throws
/// DataError with path, cause and remedy. Unless finish() returned, the destructor deletes the
/// file. One thread.
class FileWriter {
 public:
  /// Replaces what was at `path`, a link included.
  explicit FileWriter(std::filesystem::path path, FileSystem& system = FileSystem::real());
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void append(const void* data, size_t size);
  void append(std::string_view text) { append(text.data(), text.size()); }
  /// Forces the bytes to the disk and closes. The name is safe only once its folder is synced too.
  FileEntry finish();

  const std::filesystem::path& path() const { return path_; }

 private:
  void close_descriptor();

  FileSystem& system_;
  std::filesystem::path path_;
  int file_ = -1;
  bool finished_ = false;
  int64_t size_ = 0;
  Sha256 hash_;
};

using WriteFile = std::function<void(FileWriter&)>;

/// Puts a file in place whole or not at all: writes a hidden sibling, syncs it, renames it and
/// syncs the folder, which is made when absent. Other processes may write the same path: the last
/// one stands. Throws DataError (and whatever `write` throws), and then leaves nothing behind.
FileEntry replace_file(const std::filesystem::path& path, const WriteFile& write,
                       FileSystem& system = FileSystem::real());
FileEntry replace_file(const std::filesystem::path& path, std::string_view text,
                       FileSystem& system = FileSystem::real());

}  // namespace tally::files
