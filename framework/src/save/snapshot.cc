#include "save/snapshot.h"

#include "generated/version.h"
#include "run/device.h"

#include <torch/torch.h>

namespace tally::save {
namespace {

using checkpoint::CheckpointContent;
using checkpoint::StateBundle;

StateBundle collect_states(run::RankSession& session, const run::RunState& run) {
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

CheckpointContent content_of(run::RankSession& session, run::TrainingState& training,
                             HostCopies& copies, Values values) {
  run::Job& job = session.job();
  copies.begin();
  const auto on_host = [&](const at::Tensor& tensor) {
    return tensor.is_cpu() && values == Values::kShared ? tensor.detach() : copies.copy(tensor);
  };
  CheckpointContent content;
  // The flat tensor, not its many slices: one copy.
  content.model = session.parameters().named_slices(on_host(session.parameters().values()));
  for (const NamedTensor& buffer : job.task.call([](Task& task) { return task.buffers(); }))
    content.model.push_back({buffer.name, on_host(buffer.tensor)});
  for (const NamedTensor& state : training.optimizer().state())
    content.optimizer.push_back({state.name, on_host(state.tensor)});
  run::wait_for_device(session.device());
  content.recipe = job.recipe.resolved();
  content.data_lock = session.data_lock();
  content.lineage = training.lineage();
  content.tally_version = kVersion;
  for (const plugin::LoadedPlugin& loaded : job.factory->plugins())
    content.plugins.emplace(loaded.name, loaded.digest);
  return content;
}

}  // namespace

at::Tensor HostCopies::copy(const at::Tensor& tensor) {
  if (next_ == tensors_.size()) tensors_.emplace_back();
  at::Tensor& host = tensors_[next_++];
  const bool pinned = !tensor.is_cpu();
  if (!host.defined() || host.sizes() != tensor.sizes() || host.dtype() != tensor.dtype() ||
      (pinned && !host.is_pinned())) {
    // Into pinned memory a GPU copies while this thread goes on: one wait is enough for all
    // tensors.
    host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(pinned));
  }
  return host.copy_(tensor.detach(), /*non_blocking=*/true);
}

Snapshot take_snapshot(run::RankSession& session, run::TrainingState& state, HostCopies& copies,
                       Values values) {
  const torch::NoGradGuard no_grad;
  Snapshot snapshot;
  snapshot.windows = state.position().windows();
  try {
    snapshot.states = collect_states(session, state.position());
    if (session.rank() == 0) snapshot.content = content_of(session, state, copies, values);
  } catch (...) {
    snapshot.failure = std::current_exception();
  }
  return snapshot;
}

}  // namespace tally::save
