#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tally::files {

/// Every system call of this room, so that a test can record their order and make any of them
/// fail. Each answers as the call itself does: -1 and errno. The callers handle EINTR and short
/// counts.
class FileSystem {
 public:
  enum class Kind { kAbsent, kFile, kFolder, kOther };
  struct Status {
    Kind kind = Kind::kAbsent;  ///< A link is kOther: it is never followed.
    int64_t size = 0;           ///< Bytes.
  };

  virtual ~FileSystem() = default;
  /// The calls of the operating system. Lives as long as the program.
  static FileSystem& real();

  virtual int open(const std::filesystem::path& path, int flags, mode_t mode);
  virtual ssize_t read(int file, void* data, size_t size);
  virtual ssize_t write(int file, const void* data, size_t size);
  virtual int fsync(int file);
  virtual int close(int file);
  virtual int status(int file, Status* result);
  /// kAbsent when nothing is there, which is no failure.
  virtual int status(const std::filesystem::path& path, Status* result);
  virtual int make_folder(const std::filesystem::path& path, mode_t mode);
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
  /// Both must exist; at no moment is either name absent.
  virtual int exchange(const std::filesystem::path& one, const std::filesystem::path& other);
  virtual int remove_file(const std::filesystem::path& path);
  virtual int remove_folder(const std::filesystem::path& path);
  /// Appends the names in the folder, without "." and "..", in no order.
  virtual int list(const std::filesystem::path& folder, std::vector<std::string>* names);
};

/// Throws DataError: "cannot DOING PATH: text of `error` (NAME); remedy".
[[noreturn]] void throw_system_error(const std::string& doing, const std::filesystem::path& path,
                                     int error);

/// Forces the names in a folder to the disk. Throws DataError.
void sync_folder(FileSystem& system, const std::filesystem::path& folder);

/// Makes a folder and those above it, mode 0700, and syncs the parent of each that it made. Throws
/// DataError.
void make_folders(FileSystem& system, const std::filesystem::path& folder);

/// Deletes a file, a link, or a folder with all that is in it; nothing there is fine. Throws
/// DataError.
void remove_tree(FileSystem& system, const std::filesystem::path& path);

/// The names in a folder, sorted. Throws DataError.
std::vector<std::string> list_folder(FileSystem& system, const std::filesystem::path& folder);

/// The folder that holds `path`; "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace tally::files
