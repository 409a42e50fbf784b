#include "files/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace tally::files {

FileWriter::FileWriter(std::filesystem::path path, FileSystem& system)
    : system_(system), path_(std::move(path)) {
  // O_EXCL after a removal: neither a link nor a file that someone else holds open is written.
  if (system_.remove_file(path_) != 0 && errno != ENOENT)
    throw_system_error("replace", path_, errno);
  do {
    file_ = system_.open(path_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  } while (file_ < 0 && errno == EINTR);
  if (file_ < 0) throw_system_error("make the file", path_, errno);
}

FileWriter::~FileWriter() {
  if (file_ >= 0) system_.close(file_);
  if (!finished_) system_.remove_file(path_);
}

void FileWriter::append(const void* data, size_t size) {
  hash_.update(data, size);
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = system_.write(file_, next, size);
    if (written < 0 && errno == EINTR) continue;
    // Nothing written and no error would repeat for ever.
    if (written <= 0) throw_system_error("write", path_, written < 0 ? errno : EIO);
    next += written;
    size -= static_cast<size_t>(written);
    size_ += written;
  }
}

FileEntry FileWriter::finish() {
  int result = -1;
  do {
    result = system_.fsync(file_);
  } while (result != 0 && errno == EINTR);
  if (result != 0) throw_system_error("force to the disk", path_, errno);
  close_descriptor();
  finished_ = true;
  return {path_.filename().string(), size_, hash_.finish()};
}

void FileWriter::close_descriptor() {
  const int file = file_;
  file_ = -1;
  // Linux closes the descriptor in any case, so a second call could close someone else's.
  if (system_.close(file) != 0 && errno != EINTR) throw_system_error("close", path_, errno);
}

FileEntry replace_file(const std::filesystem::path& path, const WriteFile& write,
                       FileSystem& system) {
  const std::filesystem::path folder = folder_of(path);
  make_folders(system, folder);
  const std::string name = path.filename().string();
  FileWriter file(folder / ("." + name + "." + std::to_string(::getpid()) + ".partial"), system);
  write(file);
  FileEntry entry = file.finish();
  if (system.rename(file.path(), path) != 0) {
    const int error = errno;
    system.remove_file(file.path());
    throw_system_error("put in place", path, error);
  }
  sync_folder(system, folder);
  entry.name = name;
  return entry;
}

FileEntry replace_file(const std::filesystem::path& path, std::string_view text,
                       FileSystem& system) {
  return replace_file(
      path, [text](FileWriter& file) { file.append(text); }, system);
}

}  // namespace tally::files
