#include "files/file_reader.h"

#include <fcntl.h>
#include <tally/error.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace tally::files {

FileReader::FileReader(std::filesystem::path path, Links links, FileSystem& system)
    : system_(system), path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe would wait for its writer.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == Links::kRefuse ? O_NOFOLLOW : 0);
  do {
    file_ = system_.open(path_, flags, 0);
  } while (file_ < 0 && errno == EINTR);
  if (file_ < 0) throw_system_error("open", path_, errno);
  FileSystem::Status status;
  const int result = system_.status(file_, &status);
  const int error = errno;
  if (result == 0 && status.kind == FileSystem::Kind::kFile) {
    size_ = status.size;
    return;
  }
  system_.close(file_);
  if (result != 0) throw_system_error("look at", path_, error);
  throw DataError("cannot read " + path_.string() +
                  ": it is no plain file; put the file itself there");
}

FileReader::~FileReader() { system_.close(file_); }

size_t FileReader::read_some(void* data, size_t size) {
  ssize_t count = -1;
  do {
    count = system_.read(file_, data, size);
  } while (count < 0 && errno == EINTR);
  if (count < 0) throw_system_error("read", path_, errno);
  hash_.update(data, static_cast<size_t>(count));
  position_ += count;
  return static_cast<size_t>(count);
}

void FileReader::read(void* data, size_t size) {
  char* next = static_cast<char*>(data);
  while (size > 0) {
    const size_t count = read_some(next, size);
    if (count == 0)
      throw DataError("cannot read " + path_.string() + ": it ends after " +
                      std::to_string(position_) + " bytes, " + std::to_string(size) +
                      " too early; the file is cut short, so take another copy");
    next += count;
    size -= count;
  }
}

Digest FileReader::finish() {
  std::vector<char> block(1 << 18);
  while (read_some(block.data(), block.size()) > 0) {
  }
  if (position_ != size_)
    throw DataError("cannot read " + path_.string() + ": it had " + std::to_string(size_) +
                    " bytes when it was opened and " + std::to_string(position_) +
                    " at its end; let nothing write to it meanwhile");
  return hash_.finish();
}

std::string read_text(const std::filesystem::path& path, Links links, int64_t limit,
                      FileSystem& system) {
  FileReader file(path, links, system);
  if (file.size() > limit)
    throw DataError("cannot read " + path.string() + ": it has " + std::to_string(file.size()) +
                    " bytes, but at most " + std::to_string(limit) +
                    " are expected; it is not the file that its name says");
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(text.data(), text.size());
  file.finish();
  return text;
}

void check_digest(FileReader& file, const FileEntry& entry) {
  if (file.size() != entry.size)
    throw DataError(file.path().string() + " has " + std::to_string(file.size()) + " bytes, but " +
                    std::to_string(entry.size) +
                    " were written; it is damaged: restore it from a copy, or use an older one");
  const Digest digest = file.finish();
  if (digest != entry.digest)
    throw DataError(file.path().string() + " has the SHA-256 " + digest.hex() + ", but " +
                    entry.digest.hex() +
                    " was written; it is damaged: restore it from a copy, or use an older one");
}

void verify_file(const std::filesystem::path& folder, const FileEntry& entry, FileSystem& system) {
  FileReader file(folder / entry.name, Links::kRefuse, system);
  check_digest(file, entry);
}

}  // namespace tally::files
