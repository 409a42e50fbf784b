#include "files/folder_lock.h"

#include "files/file_system.h"
#include "log/log.h"

#include <tally/error.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

namespace tally::files {
namespace {

namespace fs = std::filesystem;

/// A descriptor that holds the lock, or -1 where the file system knows none.
int lock(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) throw_system_error("open", folder, errno);
  int result = 0;
  do {
    result = ::flock(file, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return file;
  const int error = errno;
  ::close(file);
  if (error == EWOULDBLOCK)
    throw DataError("another tally works in " + folder.string() +
                    "; wait for its end, or give this run another name and folder");
  log::warning("another run in " + folder.string() +
               " would not be noticed, because it cannot be locked: " + std::strerror(error));
  return -1;
}

}  // namespace

FolderLocks::FolderLocks(const std::vector<fs::path>& folders) {
  std::set<fs::path> distinct;
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path canonical = fs::canonical(folder, error);
    if (error) throw_system_error("open", folder, error.value());
    if (!distinct.insert(canonical).second) continue;
    files_.push_back(std::make_unique<File>(lock(folder)));
  }
}

FolderLocks::File::~File() {
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace tally::files
