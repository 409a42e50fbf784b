#pragma once

#include "checkpoint/data_lock.h"
#include "run/job.h"

#include <filesystem>
#include <vector>

namespace tally::run {

/// Lets the task make its data, or check what is there, and locks the files in `data.lock.json`
/// beside them. What was not there before is listed in `made.json`. Throws DataError when a lock is
/// there already and the files do not match it.
checkpoint::DataLock prepare_data(Job& job);

/// Compares the data with its lock, then lets the task read it. Throws DataError when there is no
/// lock yet.
checkpoint::DataLock open_data(Job& job);

/// Where `tally prepare` lists the drawn windows.
std::filesystem::path windows_file(const std::filesystem::path& data_folder);

/// The files of a data folder that tally made and nobody has changed since: what prepare_data()
/// made, and its own lists. Throws DataError when `made.json` cannot be read.
std::vector<std::filesystem::path> made_files(const std::filesystem::path& data_folder);

}  // namespace tally::run
