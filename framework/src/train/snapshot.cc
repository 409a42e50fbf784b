#include "train/snapshot.h"

#include "train/device.h"
#include "train/version.h"

#include <torch/torch.h>

namespace tally::train {
namespace {

using checkpoint::CheckpointContent;
using checkpoint::StateBundle;

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

/// A copy into pinned memory does not wait for the GPU: one wait at the end is enough for all.
at::Tensor on_host(const at::Tensor& tensor, Values values) {
  if (tensor.is_cpu()) return values == Values::kCopied ? tensor.detach().clone() : tensor.detach();
  at::Tensor host =
      at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(true));
  return host.copy_(tensor.detach(), /*non_blocking=*/true);
}

CheckpointContent content_of(RankSession& session, Optimizer& optimizer, Values values) {
  Job& job = session.job();
  CheckpointContent content;
  // The flat tensor, not its many slices: one copy.
  content.model = session.parameters().named_slices(on_host(session.parameters().values(), values));
  for (const NamedTensor& buffer : job.task.call([](Task& task) { return task.buffers(); }))
    content.model.push_back({buffer.name, on_host(buffer.tensor, values)});
  for (const NamedTensor& state : optimizer.state())
    content.optimizer.push_back({state.name, on_host(state.tensor, values)});
  wait_for_device(session.device());
  content.recipe = job.recipe.resolved();
  content.data_lock = session.data_lock();
  content.tally_version = kVersion;
  for (const plugin::LoadedPlugin& loaded : job.factory->plugins())
    content.plugins.emplace(loaded.name, loaded.digest);
  return content;
}

}  // namespace

Snapshot take_snapshot(RankSession& session, const RunState& run, Optimizer& optimizer,
                       Values values) {
  const torch::NoGradGuard no_grad;
  Snapshot snapshot;
  snapshot.windows = run.windows();
  try {
    snapshot.states = collect_states(session, run);
    if (session.rank() == 0) snapshot.content = content_of(session, optimizer, values);
  } catch (...) {
    snapshot.failure = std::current_exception();
  }
  return snapshot;
}

}  // namespace tally::train
