#include "train/saving.h"

#include "checkpoint/checkpoint.h"
#include "train/version.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <cstring>

namespace tally::train {
namespace {

using checkpoint::CheckpointContent;
using checkpoint::CheckpointWriter;
using checkpoint::FileEntry;
using checkpoint::StateBundle;
using distributed::CollectiveKind;

StateBundle collect_states(RankSession& session, const RunState& run) {
  StateBundle bundle;
  for (const auto& provider : session.job().providers) {
    provider.call([&](const StateProvider& hook) {
      if (hook.scope() == StateScope::kRun && session.rank() != 0) return;
      const auto writer = bundle.writer(hook.state_id());
      hook.save(run, *writer);
    });
  }
  return bundle;
}

/// Size and digest of every rank's file, on rank 0. A rank that failed sends size -1.
std::vector<FileEntry> gather_entries(RankSession& session, const std::optional<FileEntry>& mine) {
  constexpr int64_t kWords = 1 + static_cast<int64_t>(Digest::kBytes / sizeof(int64_t));
  at::Tensor input = at::full({kWords}, -1, at::kLong);
  if (mine) {
    input[0] = mine->size;
    std::memcpy(input.data_ptr<int64_t>() + 1, mine->digest.bytes().data(), Digest::kBytes);
  }
  at::Tensor all = input.unsqueeze(0);
  if (session.world() > 1) {
    all = at::empty({session.world(), kWords}, at::kLong);
    session.groups().state.all_gather(all, input, CollectiveKind::kStateGather, 1)->wait();
  }
  std::vector<FileEntry> entries;
  for (int64_t rank = 0; rank < session.world(); ++rank) {
    std::array<uint8_t, Digest::kBytes> bytes{};
    std::memcpy(bytes.data(), all[rank].const_data_ptr<int64_t>() + 1, Digest::kBytes);
    entries.push_back({checkpoint::rank_file(rank), all[rank][0].item<int64_t>(), Digest(bytes)});
  }
  return entries;
}

CheckpointContent content_of(RankSession& session, Optimizer& optimizer) {
  Job& job = session.job();
  CheckpointContent content;
  content.model = session.parameters().named();
  for (NamedTensor& buffer : job.task.call([](Task& task) { return task.buffers(); }))
    content.model.push_back(buffer);
  content.optimizer = optimizer.state();
  content.recipe = job.recipe.resolved();
  content.data_lock = session.data_lock();
  content.tally_version = kVersion;
  for (const plugin::LoadedPlugin& loaded : job.factory->plugins())
    content.plugins.emplace(loaded.name, loaded.digest);
  return content;
}

}  // namespace

std::filesystem::path save_checkpoint(RankSession& session, const RunState& run,
                                      Optimizer& optimizer) {
  session.board().phase(distributed::Phase::kSaving);
  const CheckpointWriter writer(session.job().settings.checkpoint_folder, run.windows(),
                                session.world());
  std::exception_ptr failure;
  std::optional<FileEntry> mine;
  try {
    mine = writer.write_rank_file(session.rank(), collect_states(session, run));
  } catch (...) {
    failure = std::current_exception();
  }
  const std::vector<FileEntry> entries = gather_entries(session, mine);
  const bool complete = std::all_of(entries.begin(), entries.end(),
                                    [](const FileEntry& entry) { return entry.size >= 0; });
  if (session.rank() == 0 && complete) {
    try {
      writer.publish(content_of(session, optimizer), entries);
    } catch (...) {
      failure = std::current_exception();
    }
  } else if (session.rank() == 0) {
    writer.discard();
  }
  // Nobody goes on before rank 0 has published, or knows that it has not.
  const std::vector<FileEntry> results = gather_entries(session, failure ? std::nullopt : mine);
  if (failure) std::rethrow_exception(failure);
  for (size_t rank = 0; rank < results.size(); ++rank) {
    if (results[rank].size < 0) {
      throw DataError(fmt::format(
          "the checkpoint {} was not saved, because rank {} could not write its part; see its log",
          writer.target().string(), rank));
    }
  }
  return writer.target();
}

}  // namespace tally::train
