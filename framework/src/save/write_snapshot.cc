#include "save/write_snapshot.h"

#include "log/log.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstring>

namespace tally::save {
namespace {

using checkpoint::CheckpointReader;
using checkpoint::CheckpointWriter;
using distributed::CollectiveKind;
using files::FileEntry;
using files::FileSystem;

/// Size and digest of every rank's file, on every rank. A rank that failed sends size -1.
std::vector<FileEntry> gather_entries(run::RankSession& session,
                                      const std::optional<FileEntry>& mine, int64_t windows) {
  constexpr int64_t kWords = 1 + static_cast<int64_t>(Digest::kBytes / sizeof(int64_t));
  at::Tensor input = at::full({kWords}, -1, at::kLong);
  if (mine) {
    input[0] = mine->size;
    std::memcpy(input.data_ptr<int64_t>() + 1, mine->digest.bytes().data(), Digest::kBytes);
  }
  const at::Tensor all = session.groups().state.gather(input, CollectiveKind::kSavedFiles, windows);
  std::vector<FileEntry> entries;
  for (int64_t rank = 0; rank < session.world(); ++rank) {
    std::array<uint8_t, Digest::kBytes> bytes{};
    std::memcpy(bytes.data(), all[rank].const_data_ptr<int64_t>() + 1, Digest::kBytes);
    entries.push_back({checkpoint::rank_file(rank), all[rank][0].item<int64_t>(), Digest(bytes)});
  }
  return entries;
}

void remove_old(const run::Settings& settings, const std::filesystem::path& newest,
                FileSystem& system) {
  if (settings.checkpoint_keep == 0) return;
  CheckpointReader::open(newest, system);  // an older one goes only after this one verified
  // Steps of higher windows are of another run, or of this one before it went back: they neither
  // count nor go.
  const auto steps = checkpoint::list_steps(settings.checkpoint_folder, system);
  const auto first = std::find(steps.begin(), steps.end(), newest);
  for (auto step = first; step != steps.end(); ++step) {
    if (step - first < settings.checkpoint_keep) continue;
    try {
      checkpoint::remove_step(*step, system);
    } catch (const DataError& error) {
      log::warning(fmt::format("an old checkpoint stays: {}", error.what()));
    }
  }
}

/// One save, as this rank takes part in it.
class Save {
 public:
  Save(run::RankSession& session, const Snapshot& snapshot, FileSystem& system)
      : session_(session),
        snapshot_(snapshot),
        system_(system),
        writer_(session.job().settings.checkpoint_folder, snapshot.windows, session.world(),
                system),
        failure_(snapshot.failure) {}

  std::filesystem::path run() {
    attempt([&] { mine_ = writer_.write_rank_file(session_.rank(), snapshot_.states); });
    const std::vector<FileEntry> entries = gather();
    const bool complete = std::all_of(entries.begin(), entries.end(),
                                      [](const FileEntry& entry) { return entry.size >= 0; });
    if (session_.rank() == 0 && complete) {
      attempt([&] {
        writer_.publish(*snapshot_.content, entries);
        remove_old(session_.job().settings, writer_.target(), system_);
      });
    } else if (session_.rank() == 0) {
      discard();
    }
    // Nobody goes on before rank 0 has published, or knows that it has not.
    require_all(gather());
    return writer_.target();
  }

 private:
  template <class Work>
  void attempt(Work&& work) {
    if (failure_) return;
    try {
      work();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  std::vector<FileEntry> gather() {
    return gather_entries(session_, failure_ ? std::nullopt : mine_, snapshot_.windows);
  }

  /// The reason that is on its way says more than what goes wrong here.
  void discard() {
    try {
      writer_.discard();
    } catch (const DataError& error) {
      log::warning(fmt::format("the rest of a failed checkpoint stays: {}", error.what()));
    }
  }

  void require_all(const std::vector<FileEntry>& results) const {
    if (failure_) std::rethrow_exception(failure_);
    for (size_t rank = 0; rank < results.size(); ++rank) {
      if (results[rank].size >= 0) continue;
      throw DataError(fmt::format(
          "the checkpoint {} was not saved, because rank {} could not write its part; see its log",
          writer_.target().string(), rank));
    }
  }

  run::RankSession& session_;
  const Snapshot& snapshot_;
  FileSystem& system_;
  CheckpointWriter writer_;
  std::exception_ptr failure_;
  std::optional<FileEntry> mine_;
};

}  // namespace

std::filesystem::path write_snapshot(run::RankSession& session, const Snapshot& snapshot,
                                     FileSystem& system) {
  return Save(session, snapshot, system).run();
}

}  // namespace tally::save
