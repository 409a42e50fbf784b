#include "train/window.h"

#include "run/losses.h"
#include "run/randomness.h"
#include "train/stopwatch.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>

namespace tally::train {

using distributed::Phase;

at::Tensor zero_loss(const distributed::FlatParameters& parameters) {
  at::Tensor loss = at::zeros({}, parameters.values().options());
  for (const NamedTensor& parameter : parameters.named()) {
    loss = loss + parameter.tensor.reshape({-1}).narrow(0, 0, 0).sum();
  }
  return loss;
}

Window::Window(WindowParts& parts, const PreparedWindow& prepared,
               const distributed::Agreement& agreement)
    : parts_(parts),
      prepared_(prepared),
      agreement_(agreement),
      objective_(at::zeros({}, parts.parameters.values().options().dtype(at::kDouble))),
      sums_(at::zeros({static_cast<int64_t>(parts.terms.size())}, objective_.options())) {}

WindowOutcome Window::run() {
  // 1 the loader has planned, loaded and counted; 2 all ranks have agreed on the counts; 3 so the
  // scales are known
  scale();
  parts_.parameters.clear_gradients();
  // 4 the passes; the last one reduces while it runs
  PassParts pass_parts{parts_.job.policy, parts_.sync, parts_.buckets, parts_.board};
  for (const Step& step : steps()) {
    run_pass(
        pass_parts, step.pass, [&] { return loss_of(step); }, outcome_.times);
    parts_.observer.after_pass(step.pass);
    if (step.pass.last_of_shard && !step.pass.last()) parts_.buckets.end_shard();
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

std::vector<Window::Step> Window::steps() const {
  size_t count = std::max<size_t>(prepared_.passes.size(), 1);
  if (parts_.job.policy.call([](SyncPolicy& policy) { return policy.equal_passes(); })) {
    for (const int64_t passes : agreement_.passes_by_rank)
      count = std::max(count, static_cast<size_t>(passes));
  }
  std::vector<Step> result(count - prepared_.passes.size());
  for (const LoadedPass& pass : prepared_.passes) result.push_back({{}, &pass});
  for (size_t i = 0; i < count; ++i) {
    Pass& pass = result[i].pass;
    pass.window = prepared_.plan.window;
    pass.index = static_cast<int64_t>(i);
    pass.count = static_cast<int64_t>(count);
    if (result[i].loaded != nullptr) pass.shard = result[i].loaded->shard;
  }
  for (size_t i = 0; i < count; ++i)
    result[i].pass.last_of_shard =
        i + 1 == count || result[i].pass.shard != result[i + 1].pass.shard;
  return result;
}

void Window::scale() {
  const auto rank = static_cast<size_t>(parts_.sync.rank());
  std::vector<TermCounts> counts;
  for (size_t t = 0; t < parts_.terms.size(); ++t) {
    counts.push_back({agreement_.global_counts[t], agreement_.counts_by_rank[rank][t]});
  }
  outcome_.scales = parts_.job.reducer.call([&](const LossReducer& reducer) {
    std::vector<double> scales =
        reducer.scale(parts_.terms, counts, {parts_.sync.world(), parts_.divisor});
    if (scales.size() != counts.size()) throw PluginError("scale must return one number a term");
    return scales;
  });
  outcome_.report.window = prepared_.plan.window;
  outcome_.report.counts = agreement_.counts_by_rank[rank];
  at::Tensor host =
      at::tensor(outcome_.scales, at::kDouble).to(parts_.parameters.values().scalar_type());
  scales_ =
      parts_.device.is_cpu() ? host : host.pin_memory().to(parts_.device, /*non_blocking=*/true);
}

at::Tensor Window::loss_of(const Step& step) {
  if (step.loaded == nullptr || step.loaded->batch.examples.empty())
    return zero_loss(parts_.parameters);
  const run::Settings& settings = parts_.job.settings;
  if (settings.keyed_rng) {
    run::seed_generators(
        run::keyed_seed(settings.seed, step.pass.window, step.pass.shard, step.loaded->microbatch),
        parts_.device);
  }
  return forward(*step.loaded);
}

at::Tensor Window::forward(const LoadedPass& loaded) {
  const Batch batch = run::on_device(loaded.batch, parts_.device);
  const std::vector<at::Tensor> losses = run::forward(parts_.job.task, batch);
  const at::Tensor loss = run::reduce(parts_.job.reducer, batch, losses, scales_);
  const torch::NoGradGuard no_grad;
  objective_ += loss.detach();
  sums_ += run::term_sums(parts_.job.reducer, batch, losses);
  return loss;
}

at::Tensor Window::judge() {
  const torch::NoGradGuard no_grad;
  return at::linalg_vector_norm(parts_.parameters.gradients(), 2, std::nullopt, false, at::kDouble);
}

void Window::update(const at::Tensor& norm) {
  const AddSeconds add(outcome_.times.update);
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
