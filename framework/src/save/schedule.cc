#include "save/schedule.h"

#include "checkpoint/checkpoint.h"
#include "log/log.h"
#include "save/write_snapshot.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <algorithm>
#include <memory>

namespace tally::save {

Schedule::Schedule(run::RankSession& session, run::TrainingState& state, files::FileSystem& system)
    : session_(session), state_(state), system_(system) {
  if (session.rank() != 0) return;
  try {
    checkpoint::remove_unfinished(session.job().settings.checkpoint_folder, system);
  } catch (const DataError& error) {
    log::warning(fmt::format("what an interrupted save left stays: {}", error.what()));
  }
}

bool Schedule::due(int64_t windows) const {
  const run::Settings& settings = session_.job().settings;
  const std::vector<int64_t>& at = settings.checkpoint_at;
  return (settings.checkpoint_every > 0 && windows % settings.checkpoint_every == 0) ||
         std::find(at.begin(), at.end(), windows) != at.end();
}

void Schedule::starts_at(const std::filesystem::path& step) {
  saved_ = step;
  saved_windows_ = state_.position().windows();
}

void Schedule::after_window() {
  if (!due(state_.position().windows())) return;
  settle();
  const bool async = session_.job().settings.async_checkpoint;
  begin(async);
  if (!async) settle();
}

std::filesystem::path Schedule::finish() {
  std::exception_ptr earlier;
  try {
    settle();
  } catch (const DataError&) {
    earlier = std::current_exception();
  }
  const int64_t windows = state_.position().windows();
  const bool again = pending_windows_ == windows;
  if (saved_windows_ != windows) {
    begin(/*beside_training=*/false);
    take_result();
  }
  // A step that the recipe asked for is missing, unless the line above has just made it.
  if (earlier && !again) std::rethrow_exception(earlier);
  return saved_;
}

void Schedule::begin(bool beside_training) {
  const Values values = beside_training ? Values::kCopied : Values::kShared;
  auto snapshot =
      std::make_shared<const Snapshot>(take_snapshot(session_, state_, copies_, values));
  pending_windows_ = snapshot->windows;
  const auto write = [this, snapshot = std::move(snapshot)] {
    try {
      return write_snapshot(session_, *snapshot, system_);
    } catch (...) {
      must_stop_ = !session_.job().settings.warn_on_failed_checkpoint;
      throw;
    }
  };
  // A deferred call runs in take_result(), on this thread.
  pending_ = std::async(beside_training ? std::launch::async : std::launch::deferred, write);
}

void Schedule::settle() {
  if (!pending_.valid()) return;
  try {
    take_result();
  } catch (const DataError& error) {
    if (!session_.job().settings.warn_on_failed_checkpoint) throw;
    log::warning(fmt::format("training goes on without this checkpoint: {}", error.what()));
  }
}

void Schedule::take_result() {
  session_.board().phase(distributed::Phase::kSaving);
  saved_ = pending_.get();
  saved_windows_ = pending_windows_;
}

}  // namespace tally::save
