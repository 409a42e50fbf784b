#pragma once

#include "files/atomic_file.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tally::files {

/// The hidden sibling in which a folder is put together: ".NAME.partial".
std::filesystem::path staging_of(const std::filesystem::path& target);

/// Puts a folder of files (mode 0700) in place whole or not at all, in exchange for what is there.
/// Every member throws DataError with path, cause and remedy. Unless publish() returned, nothing
/// remains of the new folder and the old one stands. One thread; one AtomicFolder a target at a
/// time.
class AtomicFolder {
 public:
  enum class Start {
    kEmpty,   ///< What lies in the staging folder is the rest of a crash.
    kShared,  ///< Other processes have written into the staging folder: see adopt().
  };
  explicit AtomicFolder(std::filesystem::path target, Start start = Start::kEmpty,
                        FileSystem& system = FileSystem::real());
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::filesystem::path& staging() const { return staging_; }

  FileEntry add(const std::string& name, const WriteFile& write);
  FileEntry add(const std::string& name, std::string_view text);
  /// Takes in a file that another process wrote into the staging folder and synced. Throws
  /// DataError unless a plain file of that size is there.
  void adopt(const FileEntry& entry);

  /// Deletes from the staging folder what was neither added nor adopted, syncs it, puts it in
  /// place, syncs the parent, and deletes what was there before. An error of the last step says
  /// that the new folder is in place.
  void publish();

 private:
  void discard() noexcept;
  void remove_strangers();
  void put_in_place();

  FileSystem& system_;
  std::filesystem::path target_;
  std::filesystem::path staging_;
  std::vector<std::string> names_;
  bool published_ = false;
};

}  // namespace tally::files
