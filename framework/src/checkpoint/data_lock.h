#pragma once

#include "files/file_entry.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tally::checkpoint {

/// Size and SHA-256 of each data file, so that a run is known to see the data it was prepared with.
class DataLock {
 public:
  /// Locks the named files, which are relative to `folder`. Throws DataError when one cannot be
  /// read or its name leaves the folder.
  static DataLock of(const std::filesystem::path& folder, const std::vector<std::string>& names);

  /// JSON; equal locks give equal text.
  std::string to_json() const;
  /// `file` is for errors. Throws DataError.
  static DataLock from_json(std::string_view text, const std::string& file);

  /// Throws DataError that lists every file that changed or is missing, with both digests.
  void check(const std::filesystem::path& folder) const;

  /// A sentence for each file that is not the same in `other`; empty when the locks are equal.
  std::vector<std::string> differences(const DataLock& other) const;

  const std::vector<files::FileEntry>& files() const { return files_; }  ///< By name.
  bool operator==(const DataLock&) const = default;

 private:
  std::vector<files::FileEntry> files_;
};

}  // namespace tally::checkpoint
