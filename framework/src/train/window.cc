#include "train/window.h"

#include "run/losses.h"
#include "run/randomness.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>

namespace tally::train {
namespace {

using distributed::Phase;

/// Adds the seconds until its end to `total`.
class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total) {}
  ~Stopwatch() {
    total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

constexpr int64_t kNoShard = -1;

int64_t shard_of(const LoadedPass* loaded) { return loaded == nullptr ? kNoShard : loaded->shard; }

}  // namespace

at::Tensor zero_loss(const distributed::FlatParameters& parameters) {
  at::Tensor loss = at::zeros({}, parameters.values().options());
  for (const NamedTensor& parameter : parameters.named()) {
    loss = loss + parameter.tensor.reshape({-1}).narrow(0, 0, 0).sum();
  }
  return loss;
}

Window::Window(WindowParts& parts, const PreparedWindow& prepared)
    : parts_(parts),
      prepared_(prepared),
      objective_(at::zeros({}, parts.parameters.values().options().dtype(at::kDouble))),
      sums_(at::zeros({static_cast<int64_t>(parts.terms.size())}, objective_.options())) {}

WindowOutcome Window::run() {
  // 1 the loader has planned, loaded and counted; 2 all ranks have agreed on the counts; 3 so the
  // scales are known
  scale();
  parts_.parameters.clear_gradients();
  // 4 the passes; the last one reduces while it runs
  const std::vector<const LoadedPass*> todo = steps();
  for (size_t i = 0; i < todo.size(); ++i) {
    if (i > 0 && shard_of(todo[i]) != shard_of(todo[i - 1])) parts_.buckets.end_shard();
    run_pass({prepared_.plan.window, static_cast<int64_t>(i), static_cast<int64_t>(todo.size())},
             todo[i]);
  }
  // 5 every rank holds the same gradients
  parts_.job.policy.call([&](SyncPolicy& policy) { policy.after_window(parts_.sync); });
  const at::Tensor norm = judge();
  // 6 one update, nothing divided any more
  if (parts_.observer.after_reduction(prepared_.plan.window)) update(norm);
  // 7 read one window late, by the loader
  report(norm);
  return std::move(outcome_);
}

std::vector<const LoadedPass*> Window::steps() const {
  size_t count = std::max<size_t>(prepared_.passes.size(), 1);
  if (parts_.job.policy.call([](SyncPolicy& policy) { return policy.equal_passes(); })) {
    for (const int64_t passes : prepared_.agreement.passes_by_rank)
      count = std::max(count, static_cast<size_t>(passes));
  }
  std::vector<const LoadedPass*> result(count - prepared_.passes.size());
  for (const LoadedPass& pass : prepared_.passes) result.push_back(&pass);
  return result;
}

void Window::scale() {
  const distributed::Agreement& agreement = prepared_.agreement;
  const auto rank = static_cast<size_t>(parts_.sync.rank());
  std::vector<TermCounts> counts;
  for (size_t t = 0; t < parts_.terms.size(); ++t) {
    counts.push_back({agreement.global_counts[t], agreement.counts_by_rank[rank][t]});
  }
  outcome_.scales = parts_.job.reducer.call([&](const LossReducer& reducer) {
    std::vector<double> scales =
        reducer.scale(parts_.terms, counts, {parts_.sync.world(), parts_.divisor});
    if (scales.size() != counts.size()) throw PluginError("scale must return one number a term");
    return scales;
  });
  outcome_.report.window = prepared_.plan.window;
  outcome_.report.counts = agreement.counts_by_rank[rank];
  at::Tensor host =
      at::tensor(outcome_.scales, at::kDouble).to(parts_.parameters.values().scalar_type());
  scales_ =
      parts_.device.is_cpu() ? host : host.pin_memory().to(parts_.device, /*non_blocking=*/true);
}

void Window::run_pass(const Pass& pass, const LoadedPass* loaded) {
  const auto policy = [&](auto hook) {
    parts_.job.policy.call(
        [&](SyncPolicy& policy_hook) { (policy_hook.*hook)(pass, parts_.sync); });
  };
  const bool idle = loaded == nullptr || loaded->batch.examples.empty();
  at::Tensor loss;
  {
    const Stopwatch watch(outcome_.times.forward);
    parts_.board.phase(Phase::kForward);
    policy(&SyncPolicy::before_forward);
    if (parts_.job.settings.keyed_rng && !idle) {
      run::seed_generators(
          run::keyed_seed(parts_.job.settings.seed, pass.window, loaded->shard, loaded->microbatch),
          parts_.device);
    }
    loss = idle ? zero_loss(parts_.parameters) : forward(*loaded);
  }
  {
    const Stopwatch watch(outcome_.times.backward);
    parts_.board.phase(Phase::kBackward);
    policy(&SyncPolicy::before_backward);
    loss.backward();
  }
  const Stopwatch watch(outcome_.times.reduce);
  parts_.board.phase(Phase::kReducing);
  parts_.buckets.finish(pass.last());
  policy(&SyncPolicy::after_backward);
  parts_.observer.after_pass(pass, shard_of(loaded));
}

at::Tensor Window::forward(const LoadedPass& loaded) {
  const Batch batch = run::on_device(loaded.batch, parts_.device);
  const std::vector<at::Tensor> losses = run::forward(parts_.job.task, batch);
  const at::Tensor loss = parts_.job.reducer.call([&](const LossReducer& reducer) {
    at::Tensor result = reducer.reduce(batch, losses, scales_);
    if (!result.defined() || result.dim() != 0)
      throw PluginError("reduce must return a scalar tensor");
    return result;
  });
  const torch::NoGradGuard no_grad;
  objective_ += loss.detach();
  for (size_t t = 0; t < losses.size(); ++t) {
    sums_.select(0, static_cast<int64_t>(t)) +=
        run::weighted_sum(losses[t].detach(), batch.terms[t].weights);
  }
  return loss;
}

at::Tensor Window::judge() {
  const torch::NoGradGuard no_grad;
  return at::linalg_vector_norm(parts_.parameters.gradients(), 2, std::nullopt, false, at::kDouble);
}

void Window::update(const at::Tensor& norm) {
  const Stopwatch watch(outcome_.times.update);
  parts_.board.phase(Phase::kUpdating);
  const torch::NoGradGuard no_grad;
  at::Tensor gradients = parts_.parameters.gradients();
  if (parts_.job.settings.clip_norm > 0.0) {
    gradients.mul_(
        (parts_.job.settings.clip_norm / norm).clamp_max(1.0).to(gradients.scalar_type()));
  }
  // The judgement stays on the device: all ranks hold the same gradient, so all skip the same steps
  // without talking.
  parts_.optimizer.step(norm.isfinite().logical_not().to(at::kFloat));
  parts_.job.policy.call([&](SyncPolicy& policy) { policy.after_step(parts_.sync); });
}

void Window::report(const at::Tensor& norm) {
  const torch::NoGradGuard no_grad;
  const at::Tensor values = at::cat({objective_.reshape({1}), norm.reshape({1}), sums_});
  if (parts_.device.is_cpu()) {
    outcome_.report.values = values;
    return;
  }
  outcome_.report.values =
      at::empty(values.sizes(), values.options().device(at::kCPU).pinned_memory(true));
  outcome_.report.values.copy_(values, /*non_blocking=*/true);
  const c10::impl::VirtualGuardImpl guard(parts_.device.type());
  outcome_.report.copied = std::make_shared<c10::Event>(parts_.device.type());
  outcome_.report.copied->record(guard.getStream(parts_.device));
}

}  // namespace tally::train
