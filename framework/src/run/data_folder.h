#pragma once

#include "checkpoint/data_lock.h"
#include "run/job.h"

namespace tally::run {

/// Lets the task make its data, or check what is there, and locks the files in `data.lock.json`
/// beside them. Throws DataError when a lock is there already and the files do not match it.
checkpoint::DataLock prepare_data(Job& job);

/// Compares the data with its lock, then lets the task read it. Throws DataError when there is no
/// lock yet.
checkpoint::DataLock open_data(Job& job);

}  // namespace tally::run
