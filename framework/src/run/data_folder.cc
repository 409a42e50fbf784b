#include "run/data_folder.h"

#include "files/atomic_file.h"
#include "run/run_folder.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <fstream>
#include <iterator>
#include <optional>

namespace tally::run {
namespace {

using checkpoint::DataLock;

std::filesystem::path lock_file(const Job& job) {
  return job.settings.data_folder / "data.lock.json";
}

std::optional<DataLock> read_lock(const Job& job) {
  const std::filesystem::path file = lock_file(job);
  std::error_code error;
  if (!std::filesystem::exists(file, error) && !error) return std::nullopt;
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream) throw DataError(fmt::format("cannot read {}; check its permissions", file.string()));
  return DataLock::from_json(text, file.string());
}

DataLock lock_of(const Job& job) {
  std::vector<std::string> names;
  for (const auto& file : job.task.call([](const Task& task) { return task.data_files(); })) {
    names.push_back(file.string());
  }
  return DataLock::of(job.settings.data_folder, names);
}

}  // namespace

DataLock prepare_data(Job& job) {
  const std::optional<DataLock> known = read_lock(job);
  if (known) known->check(job.settings.data_folder);
  make_folder(job.settings.data_folder);
  job.task.call([&](Task& task) { task.prepare(job.settings.data_folder); });
  const DataLock lock = lock_of(job);
  if (!known || *known != lock) files::replace_file(lock_file(job), lock.to_json());
  return lock;
}

DataLock open_data(Job& job) {
  const std::optional<DataLock> known = read_lock(job);
  if (!known) {
    throw DataError(
        fmt::format("there is no prepared data in {} ({} is absent); run `tally prepare` first",
                    job.settings.data_folder.string(), lock_file(job).string()));
  }
  known->check(job.settings.data_folder);
  job.task.call([&](Task& task) { task.prepare(job.settings.data_folder); });
  return *known;
}

}  // namespace tally::run
