#pragma once

#include "checkpoint/lineage.h"
#include "files/file_entry.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tally::checkpoint {

inline constexpr char kManifestFormat[] = "tally-checkpoint/2";

/// Names of the files in a checkpoint.
inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kRecipeFile[] = "recipe.toml";
inline constexpr char kDataLockFile[] = "data.lock.json";
inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kManifestDigestFile[] = "manifest.sha256";
std::string rank_file(int64_t rank);

/// What a checkpoint is made of. The same run gives the same bytes: there is no date in it.
struct Manifest {
  int64_t window = 0;  ///< Finished windows.
  int64_t world = 1;
  std::string tally_version;
  std::string torch_version;
  std::map<std::string, Digest> plugins;  ///< SHA-256 of each plugin file, by the plugin's name.
  Lineage lineage;                        ///< At least one link.
  std::vector<files::FileEntry> files;    ///< All but the manifest and its digest, by name.
  bool operator==(const Manifest&) const = default;

  std::string to_json() const;
  /// `file` is for errors. Throws DataError for another format, a name that leaves the folder, and
  /// unless the files are exactly those that a checkpoint of this world has.
  static Manifest from_json(std::string_view text, const std::string& file);

  /// Throws DataError when the manifest does not name it.
  const files::FileEntry& file(std::string_view name) const;
};

/// Content of manifest.sha256, which `sha256sum --check` understands.
std::string manifest_digest_line(std::string_view manifest);

}  // namespace tally::checkpoint
