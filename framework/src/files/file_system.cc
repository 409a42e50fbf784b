#include "files/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <tally/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace tally::files {
namespace {

FileSystem::Status to_status(const struct stat& found) {
  FileSystem::Status result;
  result.kind = S_ISREG(found.st_mode)   ? FileSystem::Kind::kFile
                : S_ISDIR(found.st_mode) ? FileSystem::Kind::kFolder
                                         : FileSystem::Kind::kOther;
  result.size = found.st_size;
  return result;
}

std::string remedy(const std::filesystem::path& path, int error) {
  const std::string folder = folder_of(path).string();
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free space on the file system of " + folder + ", or choose a folder on another one";
    case EACCES:
    case EPERM:
    case EROFS:
      return "give this user access to " + folder + ", or choose another folder";
    case ENOENT:
      return "check that " + folder + " exists and what it holds";
    case ELOOP:
      return "a link stands where a plain file or folder is needed: put the file itself there";
    case ENOTDIR:
    case EEXIST:
      return "a file stands where a folder is needed: move it away, or choose another folder";
    case EINVAL:
    case ENOSYS:
    case EXDEV:
      return "the file system of " + folder +
             " does not support this: choose a folder on a local one";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (ulimit -n)";
    default:
      return "check the disk that holds " + folder;
  }
}

}  // namespace

FileSystem& FileSystem::real() {
  static FileSystem system;
  return system;
}

int FileSystem::open(const std::filesystem::path& path, int flags, mode_t mode) {
  return ::open(path.c_str(), flags, mode);
}

ssize_t FileSystem::read(int file, void* data, size_t size) { return ::read(file, data, size); }

ssize_t FileSystem::write(int file, const void* data, size_t size) {
  return ::write(file, data, size);
}

int FileSystem::fsync(int file) { return ::fsync(file); }

int FileSystem::close(int file) { return ::close(file); }

int FileSystem::status(int file, Status* result) {
  struct stat found {};
  if (::fstat(file, &found) != 0) return -1;
  *result = to_status(found);
  return 0;
}

int FileSystem::status(const std::filesystem::path& path, Status* result) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) {
    *result = Status{};
    return errno == ENOENT ? 0 : -1;
  }
  *result = to_status(found);
  return 0;
}

int FileSystem::make_folder(const std::filesystem::path& path, mode_t mode) {
  return ::mkdir(path.c_str(), mode);
}

int FileSystem::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  return std::rename(from.c_str(), to.c_str());
}

int FileSystem::exchange(const std::filesystem::path& one, const std::filesystem::path& other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
}

int FileSystem::remove_file(const std::filesystem::path& path) { return ::unlink(path.c_str()); }

int FileSystem::remove_folder(const std::filesystem::path& path) { return ::rmdir(path.c_str()); }

int FileSystem::list(const std::filesystem::path& folder, std::vector<std::string>* names) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names->push_back(entry->path().filename().string());
  }
  errno = error.value();
  return error ? -1 : 0;
}

void throw_system_error(const std::string& doing, const std::filesystem::path& path, int error) {
  const char* name = strerrorname_np(error);
  throw DataError("cannot " + doing + " " + path.string() + ": " +
                  std::generic_category().message(error) + " (" +
                  (name != nullptr ? name : std::to_string(error)) + "); " + remedy(path, error));
}

void sync_folder(FileSystem& system, const std::filesystem::path& folder) {
  int file = -1;
  do {
    file = system.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  } while (file < 0 && errno == EINTR);
  if (file < 0) throw_system_error("open the folder", folder, errno);
  int result = -1;
  do {
    result = system.fsync(file);
  } while (result != 0 && errno == EINTR);
  const int error = errno;
  system.close(file);
  if (result != 0) throw_system_error("force to the disk the folder", folder, error);
}

void make_folders(FileSystem& system, const std::filesystem::path& folder) {
  FileSystem::Status status;
  if (folder.empty() || folder == folder.root_path()) return;
  // A link to a folder is welcome here: people keep checkpoints on another disk that way.
  if (system.status(folder / ".", &status) == 0 && status.kind == FileSystem::Kind::kFolder) return;
  make_folders(system, folder.parent_path());
  if (system.make_folder(folder, 0700) != 0) {
    if (errno != EEXIST) throw_system_error("make the folder", folder, errno);
    // Another rank has made it meanwhile, or it is no folder, or one that this user may not enter.
    if (system.status(folder / ".", &status) != 0)
      throw_system_error("enter the folder", folder / "", errno);
  }
  sync_folder(system, folder_of(folder));
}

void remove_tree(FileSystem& system, const std::filesystem::path& path) {
  FileSystem::Status status;
  if (system.status(path, &status) != 0) throw_system_error("look at", path, errno);
  if (status.kind == FileSystem::Kind::kAbsent) return;
  if (status.kind != FileSystem::Kind::kFolder) {
    if (system.remove_file(path) != 0 && errno != ENOENT) throw_system_error("delete", path, errno);
    return;
  }
  for (const std::string& name : list_folder(system, path)) remove_tree(system, path / name);
  if (system.remove_folder(path) != 0 && errno != ENOENT)
    throw_system_error("delete the folder", path, errno);
}

std::vector<std::string> list_folder(FileSystem& system, const std::filesystem::path& folder) {
  std::vector<std::string> names;
  if (system.list(folder, &names) != 0) throw_system_error("list the folder", folder, errno);
  std::sort(names.begin(), names.end());
  return names;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

}  // namespace tally::files
