#include "run/data_folder.h"

#include "files/atomic_file.h"
#include "run/run_folder.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <set>

namespace tally::run {
namespace {

using checkpoint::DataLock;

namespace fs = std::filesystem;

fs::path lock_file(const fs::path& folder) { return folder / "data.lock.json"; }
fs::path made_file(const fs::path& folder) { return folder / "made.json"; }

/// nullopt where there is no file.
std::optional<DataLock> read_lock(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error) && !error) return std::nullopt;
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) throw DataError(fmt::format("cannot read {}; check its permissions", file.string()));
  return DataLock::from_json(text, file.string());
}

/// The files of a list that are there and have not changed since.
std::vector<std::string> unchanged(const std::optional<DataLock>& list, const fs::path& folder) {
  std::vector<std::string> names;
  if (!list) return names;
  for (const files::FileEntry& entry : list->files()) {
    std::error_code error;
    if (!fs::is_regular_file(fs::symlink_status(folder / entry.name, error))) continue;
    const DataLock found = DataLock::of(folder, {entry.name});
    if (found.files().front() == entry) names.push_back(entry.name);
  }
  return names;
}

std::vector<std::string> data_files(const Job& job) {
  std::vector<std::string> names;
  for (const fs::path& file : job.task.call([](const Task& task) { return task.data_files(); }))
    names.push_back(file.string());
  return names;
}

std::set<std::string> present(const Job& job) {
  std::set<std::string> names;
  for (const std::string& name : data_files(job)) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(job.settings.data_folder / name, error))) names.insert(name);
  }
  return names;
}

/// Lists the data files that were not there before, so that `clean` knows what it may delete.
void list_made_files(const Job& job, const std::set<std::string>& before) {
  const fs::path& folder = job.settings.data_folder;
  const std::optional<DataLock> known = read_lock(made_file(folder));
  std::vector<std::string> made = unchanged(known, folder);
  for (const std::string& name : data_files(job))
    if (!before.contains(name)) made.push_back(name);
  const DataLock list = DataLock::of(folder, made);
  if (known ? *known != list : !made.empty())
    files::replace_file(made_file(folder), list.to_json());
}

}  // namespace

DataLock prepare_data(Job& job) {
  const fs::path& folder = job.settings.data_folder;
  const std::optional<DataLock> known = read_lock(lock_file(folder));
  if (known) known->check(folder);
  make_folder(folder);
  const std::set<std::string> before = present(job);
  job.task.call([&](Task& task) { task.prepare(folder); });
  const DataLock lock = DataLock::of(folder, data_files(job));
  if (!known || *known != lock) files::replace_file(lock_file(folder), lock.to_json());
  list_made_files(job, before);
  return lock;
}

DataLock open_data(Job& job) {
  const fs::path& folder = job.settings.data_folder;
  const std::optional<DataLock> known = read_lock(lock_file(folder));
  if (!known) {
    throw DataError(
        fmt::format("there is no prepared data in {} ({} is absent); run `tally prepare` first",
                    folder.string(), lock_file(folder).string()));
  }
  known->check(folder);
  job.task.call([&](Task& task) { task.prepare(folder); });
  return *known;
}

fs::path windows_file(const fs::path& data_folder) { return data_folder / "windows.jsonl"; }

std::vector<fs::path> made_files(const fs::path& data_folder) {
  std::vector<fs::path> files;
  for (const std::string& name : unchanged(read_lock(made_file(data_folder)), data_folder))
    files.push_back(data_folder / name);
  for (const fs::path& own :
       {lock_file(data_folder), made_file(data_folder), windows_file(data_folder)}) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(own, error))) files.push_back(own);
  }
  return files;
}

}  // namespace tally::run
