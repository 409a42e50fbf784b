#include "train/loading.h"

#include "report/numbers.h"
#include "run/losses.h"
#include "run/plan_chain.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <utility>

namespace tally::train {
namespace {

void pin(Batch& batch) {
  for (NamedTensor& input : batch.inputs) input.tensor = input.tensor.pin_memory();
  for (Term& term : batch.terms) {
    term.weights = term.weights.pin_memory();
    if (term.documents) term.documents = term.documents->pin_memory();
  }
}

void require_shape(const WindowPlan& plan, int64_t window, int64_t shards) {
  if (plan.window == window && static_cast<int64_t>(plan.shards.size()) == shards) return;
  throw PluginError(fmt::format(
      "planned window {} with {}, but window {} with {} (window.shards) was asked for", plan.window,
      report::counted(static_cast<int64_t>(plan.shards.size()), "shard"), window, shards));
}

}  // namespace

Loading::Loading(const run::Job& job, int64_t rank, int64_t world, LoadingOptions options)
    : job_(job), rank_(rank), world_(world), options_(std::move(options)), chain_(options_.chain) {}

std::optional<PreparedWindow> Loading::window(int64_t window, distributed::ControlRecord& record) {
  auto state = std::make_shared<MemoryState>();
  std::optional<WindowPlan> plan = job_.sampler.call([&](Sampler& sampler) {
    std::optional<WindowPlan> drawn = sampler.plan(window);
    if (drawn) require_shape(*drawn, window, job_.settings.shards);
    sampler.save_state(*state);
    return drawn;
  });
  if (!plan) return std::nullopt;
  chain_ = run::chain(chain_, *plan);
  PreparedWindow prepared{std::move(*plan), {}, std::move(state)};
  for (int64_t shard = rank_; shard < job_.settings.shards; shard += world_) {
    const Shard& microbatches = prepared.plan.shards[static_cast<size_t>(shard)];
    record.shards.push_back(load_shard(shard, microbatches, prepared.passes));
  }
  return prepared;
}

distributed::ShardRecord Loading::load_shard(int64_t shard, const Shard& microbatches,
                                             std::vector<LoadedPass>& passes) const {
  distributed::ShardRecord record{shard, static_cast<int64_t>(microbatches.size()),
                                  std::vector<int64_t>(options_.terms, 0)};
  for (size_t m = 0; m < microbatches.size(); ++m) {
    LoadedPass& pass = passes.emplace_back(shard, static_cast<int64_t>(m), Batch{});
    if (microbatches[m].empty()) continue;
    pass.batch = job_.task.call(
        [&](const Task& task) { return task.load("train", microbatches[m], std::nullopt); });
    const std::vector<int64_t> counts = run::count(job_.reducer, pass.batch, options_.terms);
    for (size_t t = 0; t < options_.terms; ++t) record.counts[t] += counts[t];
    pin_for_device(pass.batch);
  }
  return record;
}

int64_t Loading::evaluation_steps(int64_t window) const {
  if (!options_.evaluation || window == 0 || window % job_.settings.evaluate_every != 0) return 0;
  return (options_.evaluation->size() + world_ - 1) / world_;
}

EvaluationPass Loading::evaluation(int64_t window, int64_t step) const {
  const int64_t batch = step * world_ + rank_;
  // A rank without a batch of its own takes the first: every rank then does the same.
  const bool own = batch < options_.evaluation->size();
  EvaluationPass pass{step, evaluation_steps(window), {}, {}};
  pass.batch = job_.task.call([&](const Task& task) {
    return task.load(options_.evaluation->split, options_.evaluation->examples(own ? batch : 0),
                     std::nullopt);
  });
  pass.counts = run::count(job_.reducer, pass.batch, options_.terms);
  pin_for_device(pass.batch);
  return pass;
}

void Loading::pin_for_device(Batch& batch) const {
  if (!options_.device.is_cpu()) pin(batch);
}

}  // namespace tally::train
