#pragma once

#include <filesystem>
#include <memory>
#include <vector>

namespace tally::files {

/// Keeps two processes from writing into one folder at once, by flock(2) on the folder itself: it
/// ends with the process, however that ends, and no file is left. What a process starts does not
/// inherit it.
class FolderLocks {
 public:
  /// The folders must exist; one may be named twice. Throws DataError when another process, or
  /// another object of this one, holds one of them. Where a file system knows no locks, a warning
  /// says so.
  explicit FolderLocks(const std::vector<std::filesystem::path>& folders);

 private:
  struct File {
    explicit File(int opened) : descriptor(opened) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File();
    int descriptor;  ///< -1: none.
  };
  std::vector<std::unique_ptr<File>> files_;
};

}  // namespace tally::files
