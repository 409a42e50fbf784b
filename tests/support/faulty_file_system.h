#pragma once

#include "files/file_system.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>
#include <vector>

namespace tally {

/// The real calls, recorded in order, one of which can be made to fail.
class FaultyFileSystem : public files::FileSystem {
 public:
  std::vector<std::string> calls;  ///< "write NAME"; a folder's own name for its descriptor.
  std::string begin;               ///< Calls are recorded from the first whose path names this,
  std::string end;                 ///< up to the first whose path names this; empty: no end.
  size_t fail_at = SIZE_MAX;       ///< Index of the call that fails.
  std::string fail_call;           ///< Or the first with this text: "write NAME".
  int error = EIO;
  size_t longest = SIZE_MAX;  ///< Bytes that one read or write moves at most.
  bool interrupt = false;     ///< Every call that may be interrupted is, once each time.

  /// Whether a call was made to fail.
  bool failed() const { return calls.size() > fail_at; }

  int open(const std::filesystem::path& path, int flags, mode_t mode) override {
    if (interrupted() || fails("open", path)) return -1;
    const int file = files::FileSystem::open(path, flags, mode);
    if (file >= 0) names_[file] = path;
    return file;
  }
  ssize_t read(int file, void* data, size_t size) override {
    if (interrupted() || fails("read", names_[file])) return -1;
    return files::FileSystem::read(file, data, std::min(size, longest));
  }
  ssize_t write(int file, const void* data, size_t size) override {
    if (interrupted() || fails("write", names_[file])) return -1;
    return files::FileSystem::write(file, data, std::min(size, longest));
  }
  int fsync(int file) override {
    return interrupted() || fails("fsync", names_[file]) ? -1 : files::FileSystem::fsync(file);
  }
  int close(int file) override {
    // As on Linux, a close that fails has closed.
    const int result = files::FileSystem::close(file);
    return fails("close", names_[file]) ? -1 : result;
  }
  int status(int file, Status* result) override {
    return fails("status", names_[file]) ? -1 : files::FileSystem::status(file, result);
  }
  int status(const std::filesystem::path& path, Status* result) override {
    return fails("status", path) ? -1 : files::FileSystem::status(path, result);
  }
  int make_folder(const std::filesystem::path& path, mode_t mode) override {
    return fails("make_folder", path) ? -1 : files::FileSystem::make_folder(path, mode);
  }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return fails("rename", to) ? -1 : files::FileSystem::rename(from, to);
  }
  int exchange(const std::filesystem::path& one, const std::filesystem::path& other) override {
    return fails("exchange", other) ? -1 : files::FileSystem::exchange(one, other);
  }
  int remove_file(const std::filesystem::path& path) override {
    return fails("remove_file", path) ? -1 : files::FileSystem::remove_file(path);
  }
  int remove_folder(const std::filesystem::path& path) override {
    return fails("remove_folder", path) ? -1 : files::FileSystem::remove_folder(path);
  }
  int list(const std::filesystem::path& folder, std::vector<std::string>* names) override {
    return fails("list", folder) ? -1 : files::FileSystem::list(folder, names);
  }

 private:
  bool fails(const std::string& call, const std::filesystem::path& path) {
    begun_ = begun_ || path.string().find(begin) != std::string::npos;
    ended_ = ended_ || (!end.empty() && path.string().find(end) != std::string::npos);
    if (!begun_ || ended_) return false;
    calls.push_back(call + " " + path.filename().string());
    const bool named =
        calls.back() == fail_call && std::count(calls.begin(), calls.end(), fail_call) == 1;
    if (calls.size() - 1 != fail_at && !named) return false;
    errno = error;
    return true;
  }

  bool interrupted() {
    interrupted_ = interrupt && !interrupted_;
    if (interrupted_) errno = EINTR;
    return interrupted_;
  }

  std::map<int, std::filesystem::path> names_;
  bool interrupted_ = false;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace tally
