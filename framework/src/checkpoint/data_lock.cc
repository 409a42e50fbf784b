#include "checkpoint/data_lock.h"

#include "checkpoint/json.h"
#include "files/file_reader.h"

#include <tally/error.h>

#include <algorithm>
#include <set>

namespace tally::checkpoint {
namespace {

constexpr char kFormat[] = "tally-data-lock/1";

void sort_by_name(std::vector<files::FileEntry>& files) {
  std::sort(files.begin(), files.end(),
            [](const files::FileEntry& one, const files::FileEntry& other) {
              return one.name < other.name;
            });
}

files::FileEntry entry_of(const std::filesystem::path& folder, const std::string& name) {
  // The data folder is the user's own: a link to a large file elsewhere is fine.
  files::FileReader file(folder / name, files::Links::kFollow);
  return {name, file.size(), file.finish()};
}

const files::FileEntry* find(const std::vector<files::FileEntry>& files, const std::string& name) {
  for (const files::FileEntry& entry : files) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::string describe(const files::FileEntry& entry) {
  return std::to_string(entry.size) + " bytes, SHA-256 " + entry.digest.hex();
}

}  // namespace

DataLock DataLock::of(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  DataLock lock;
  for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
    if (!stays_inside(name))
      throw DataError("cannot lock the data file '" + name +
                      "': it is not named by a path inside " + folder.string() +
                      "; keep all data files in that folder");
    lock.files_.push_back(entry_of(folder, name));
  }
  return lock;
}

std::string DataLock::to_json() const {
  const nlohmann::json json = {{"format", kFormat}, {"files", entries_to_json(files_)}};
  return json.dump(2) + "\n";
}

DataLock DataLock::from_json(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  require_keys(json, {"files", "format"}, file);
  const std::string format = text_at(json, "format", file);
  if (format != kFormat)
    throw DataError("cannot use " + file + ": its format is '" + format +
                    "', but this tally reads '" + kFormat + "'; use the tally that wrote it");
  DataLock lock;
  lock.files_ = entries_from_json(json["files"], file);
  sort_by_name(lock.files_);
  return lock;
}

void DataLock::check(const std::filesystem::path& folder) const {
  DataLock found;
  for (const files::FileEntry& entry : files_) {
    std::error_code error;
    if (std::filesystem::exists(folder / entry.name, error))
      found.files_.push_back(entry_of(folder, entry.name));
  }
  // One line: a rank's log and the launcher show the first line of an error.
  std::string text;
  for (const std::string& difference : differences(found))
    text += (text.empty() ? "" : "; ") + difference;
  if (!text.empty())
    throw DataError(
        "the data in " + folder.string() + " is not what was locked: " + text +
        "; restore these files, or, to use what is there, remove data.lock.json and run "
        "`tally prepare`");
}

std::vector<std::string> DataLock::differences(const DataLock& other) const {
  std::vector<std::string> sentences;
  for (const files::FileEntry& entry : files_) {
    const files::FileEntry* found = find(other.files_, entry.name);
    if (found == nullptr)
      sentences.push_back(entry.name + " is missing: " + describe(entry) + " was locked");
    else if (*found != entry)
      sentences.push_back(entry.name + " changed: " + describe(entry) + " was locked, " +
                          describe(*found) + " is there");
  }
  for (const files::FileEntry& entry : other.files_) {
    if (find(files_, entry.name) == nullptr)
      sentences.push_back(entry.name + " was not locked: " + describe(entry) + " is there");
  }
  return sentences;
}

}  // namespace tally::checkpoint
