#pragma once

#include "files/file_entry.h"
#include "files/file_system.h"

#include <filesystem>
#include <string>

namespace tally::files {

/// Whether a link in the place of a file is opened or refused.
enum class Links { kFollow, kRefuse };

/// A plain file, read from front to back and hashed on the way. Every member throws DataError with
/// path, cause and remedy. One thread.
class FileReader {
 public:
  FileReader(std::filesystem::path path, Links links, FileSystem& system = FileSystem::real());
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int64_t size() const { return size_; }  ///< Bytes, when it was opened.
  int64_t position() const { return position_; }

  /// Exactly `size` bytes; throws when the file ends before.
  void read(void* data, size_t size);
  /// Reads what is left and gives the SHA-256 of the whole file; throws when it has grown.
  Digest finish();

 private:
  size_t read_some(void* data, size_t size);

  FileSystem& system_;
  std::filesystem::path path_;
  int file_ = -1;
  int64_t size_ = 0;
  int64_t position_ = 0;
  Sha256 hash_;
};

/// The bytes of a file of at most `limit` bytes. Throws DataError.
std::string read_text(const std::filesystem::path& path, Links links, int64_t limit,
                      FileSystem& system = FileSystem::real());

/// Throws DataError naming the file and both values unless `file` has that size and, read to its
/// end, that digest.
void check_digest(FileReader& file, const FileEntry& entry);

/// The same for folder/entry.name; a link is refused.
void verify_file(const std::filesystem::path& folder, const FileEntry& entry,
                 FileSystem& system = FileSystem::real());

}  // namespace tally::files
