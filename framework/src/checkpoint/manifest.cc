#include "checkpoint/manifest.h"

#include "checkpoint/json.h"

#include <tally/error.h>

#include <algorithm>
#include <set>

namespace tally::checkpoint {
namespace {

void check_files(const Manifest& manifest, const std::string& file) {
  std::set<std::string> missing = {kModelFile, kOptimizerFile, kRecipeFile, kDataLockFile};
  // The world of a damaged manifest may be any number, so nothing is made that large.
  if (manifest.world < 1 ||
      static_cast<uint64_t>(manifest.world) != manifest.files.size() - missing.size())
    throw DataError("cannot use " + file + ": it names " + std::to_string(manifest.files.size()) +
                    " files, but a checkpoint of " + std::to_string(manifest.world) +
                    " ranks has " + std::to_string(missing.size()) +
                    " and one a rank; take another copy of the checkpoint");
  for (int64_t rank = 0; rank < manifest.world; ++rank) missing.insert(rank_file(rank));
  for (const files::FileEntry& entry : manifest.files) {
    if (missing.erase(entry.name) == 0)
      throw DataError("cannot use " + file + ": it names '" + entry.name +
                      "', which a checkpoint of " + std::to_string(manifest.world) +
                      " ranks does not have; take another copy of the checkpoint");
  }
  if (!missing.empty())
    throw DataError("cannot use " + file + ": it does not name '" + *missing.begin() +
                    "'; take another copy of the checkpoint");
}

}  // namespace

std::string rank_file(int64_t rank) { return "rank-" + std::to_string(rank) + ".safetensors"; }

std::string Manifest::to_json() const {
  nlohmann::json hashes = nlohmann::json::object();
  for (const auto& [name, digest] : plugins) hashes[name] = digest.hex();
  std::vector<files::FileEntry> ordered = files;
  std::sort(ordered.begin(), ordered.end(),
            [](const files::FileEntry& one, const files::FileEntry& other) {
              return one.name < other.name;
            });
  const nlohmann::json json = {{"format", kManifestFormat},
                               {"window", window},
                               {"world", world},
                               {"tally", tally_version},
                               {"libtorch", torch_version},
                               {"plugins", hashes},
                               {"lineage", checkpoint::to_json(lineage)},
                               {"files", entries_to_json(ordered)}};
  return json.dump(2) + "\n";
}

Manifest Manifest::from_json(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  // The format first: another one may have other keys.
  const bool has_format = json.is_object() && json.contains("format") && json["format"].is_string();
  const std::string format = has_format ? json["format"].get<std::string>() : "none";
  if (format != kManifestFormat)
    throw DataError("cannot use " + file + ": its format is '" + format +
                    "', but this tally reads '" + kManifestFormat +
                    "'; use the tally that wrote it");
  require_keys(json,
               {"format", "window", "world", "tally", "libtorch", "plugins", "lineage", "files"},
               file);
  Manifest manifest;
  manifest.window = integer_at(json, "window", file);
  manifest.world = integer_at(json, "world", file);
  manifest.tally_version = text_at(json, "tally", file);
  manifest.torch_version = text_at(json, "libtorch", file);
  if (!json["plugins"].is_object())
    throw DataError("cannot use " + file + ": 'plugins' must be an object; take another copy");
  for (const auto& [name, digest] : json["plugins"].items())
    manifest.plugins[name] = digest_at(json["plugins"], name, file);
  manifest.lineage = lineage_from_json(json["lineage"], manifest.window, file);
  manifest.files = entries_from_json(json["files"], file);
  check_files(manifest, file);
  return manifest;
}

const files::FileEntry& Manifest::file(std::string_view name) const {
  for (const files::FileEntry& entry : files) {
    if (entry.name == name) return entry;
  }
  throw DataError("the checkpoint after window " + std::to_string(window) + " has no file '" +
                  std::string(name) + "': it was saved by " + std::to_string(world) + " ranks");
}

std::string manifest_digest_line(std::string_view manifest) {
  return sha256(manifest).hex() + "  " + kManifestFile + "\n";
}

}  // namespace tally::checkpoint
