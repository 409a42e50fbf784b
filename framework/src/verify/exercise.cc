#include "verify/exercise.h"

#include "run/data_folder.h"
#include "run/device.h"
#include "run/losses.h"
#include "run/randomness.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>

namespace tally::verify {
namespace {

constexpr const char* kSplit = "train";

int64_t supervised(const at::Tensor& weights) { return weights.ne(0).sum().item<int64_t>(); }

/// The reference's own sum, which asks no reducer.
at::Tensor weighted_sum(const at::Tensor& losses, const at::Tensor& weights) {
  return (losses * weights).where(weights != 0, 0).sum(at::kDouble);
}

/// Leaves the first `count` supervised positions of every term.
void supervise_first(Batch& batch, int64_t count) {
  for (Term& term : batch.terms) {
    const at::Tensor order = term.weights.ne(0).flatten().cumsum(0).view_as(term.weights);
    term.weights = term.weights.where(order <= count, 0);
  }
}

at::Tensor scales_tensor(const std::vector<double>& scales, const at::Tensor& losses) {
  return at::tensor(scales, at::kDouble).to(losses.scalar_type()).to(losses.device());
}

int64_t divisor_of(const run::Job& job, size_t world) {
  return job.policy.call(
      [&](const SyncPolicy& policy) { return policy.divisor(static_cast<int64_t>(world)); });
}

/// The objective of each rank, as its window would reduce it. Counts are taken on the CPU batches.
std::vector<at::Tensor> reduced(const run::Job& job, const std::vector<TermInfo>& terms,
                                const std::vector<Batch>& batches,
                                const std::vector<std::vector<at::Tensor>>& losses) {
  return job.reducer.call([&](const LossReducer& reducer) {
    std::vector<std::vector<TermCounts>> counts(batches.size(),
                                                std::vector<TermCounts>(terms.size()));
    for (size_t rank = 0; rank < batches.size(); ++rank) {
      const std::vector<int64_t> local = reducer.count(batches[rank]);
      for (size_t t = 0; t < terms.size(); ++t) {
        counts[rank][t].local = local.at(t);
        for (auto& of_rank : counts) of_rank[t].global += local.at(t);
      }
    }
    const Aggregation ranks{.world = static_cast<int64_t>(batches.size()),
                            .divisor = divisor_of(job, batches.size())};
    std::vector<at::Tensor> objectives;
    for (size_t rank = 0; rank < batches.size(); ++rank) {
      const at::Tensor& first = losses[rank].front();
      const Batch batch = run::on_device(batches[rank], first.device());
      objectives.push_back(reducer.reduce(
          batch, losses[rank], scales_tensor(reducer.scale(terms, counts[rank], ranks), first)));
    }
    return objectives;
  });
}

}  // namespace

HandWindow exercise_window(int64_t tokens_of_rank_1) {
  return {{{12, 1.0}}, {{tokens_of_rank_1, 3.0}}};
}

ModelExercise::ModelExercise(run::Job& model, std::vector<const run::Job*> reducers,
                             int64_t longest)
    : model_(model),
      reducers_(std::move(reducers)),
      device_(run::choose_device(model.settings, {})) {
  const run::Settings& settings = model_.settings;
  at::set_num_threads(static_cast<int>(settings.threads));
  run::use_device(device_);
  data_ = sha256(run::open_data(model_).to_json());
  model_.task.call([&](Task& task) {
    terms_ = task.terms();
    task.initialise(settings.seed);
    task.to(device_);
    parameters_ = task.parameters();
    task.set_training(true);
  });
  choose_examples(longest);
}

void ModelExercise::choose_examples(int64_t longest) {
  const ExampleTable table =
      model_.task.call([](const Task& task) { return task.examples(kSplit); });
  for (size_t id = 0; id < table.lengths.size() && examples_.size() < 2; ++id) {
    if (table.lengths[id] < longest) continue;
    const Batch batch = model_.task.call([&](const Task& task) {
      return task.load(kSplit, {static_cast<ExampleId>(id)}, std::nullopt);
    });
    const bool enough = std::all_of(batch.terms.begin(), batch.terms.end(), [&](const Term& term) {
      return supervised(term.weights) >= longest;
    });
    if (enough) examples_.push_back(static_cast<ExampleId>(id));
  }
  if (examples_.size() == 2) return;
  throw DataError(fmt::format(
      "the exercise needs two training examples with {} supervised positions, and the data in {} "
      "have {}; prepare other data or options",
      longest, model_.settings.data_folder.string(), examples_.size()));
}

Batch ModelExercise::batch(size_t rank, int64_t count) {
  Batch batch = model_.task.call(
      [&](const Task& task) { return task.load(kSplit, {examples_.at(rank)}, std::nullopt); });
  supervise_first(batch, count);
  return batch;
}

std::vector<at::Tensor> ModelExercise::losses(size_t rank, const Batch& batch) {
  // Dropout, if there is any, draws the same numbers whatever the counts are.
  run::seed_generators(run::keyed_seed(model_.settings.seed, 0, static_cast<int64_t>(rank), 0),
                       device_);
  return run::forward(model_.task, run::on_device(batch, device_));
}

at::Tensor ModelExercise::gradient(const at::Tensor& objective) {
  std::vector<at::Tensor> leaves;
  for (const NamedTensor& parameter : parameters_) leaves.push_back(parameter.tensor);
  std::vector<at::Tensor> gradients =
      torch::autograd::grad({objective}, leaves, {}, /*retain_graph=*/true, /*create_graph=*/false,
                            /*allow_unused=*/true);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = at::zeros_like(leaves[i]);
    gradients[i] = gradients[i].flatten();
  }
  return at::cat(gradients).to(at::kCPU);
}

/// What each rank's sequence adds to the gradient of one device over both, written down from the
/// definition.
std::vector<at::Tensor> ModelExercise::reference_shares(
    const std::vector<Batch>& batches, const std::vector<std::vector<at::Tensor>>& losses) {
  std::vector<at::Tensor> shares;
  for (size_t rank = 0; rank < batches.size(); ++rank) {
    at::Tensor objective = at::zeros({}, at::kDouble).to(device_);
    for (size_t t = 0; t < terms_.size(); ++t) {
      int64_t global = 0;
      for (const Batch& other : batches) global += supervised(other.terms[t].weights);
      const at::Tensor weights = batches[rank].terms[t].weights.to(device_);
      objective = objective + weighted_sum(losses[rank][t], weights) *
                                  (terms_[t].coefficient / static_cast<double>(global));
    }
    shares.push_back(gradient(objective));
  }
  return shares;
}

GradientSet ModelExercise::gradient_set(const std::string& recipe, const at::Tensor& flat,
                                        const std::vector<int64_t>& counts) const {
  GradientSet set;
  set.recipe = recipe;
  set.data = data_;
  set.world = static_cast<int64_t>(counts.size());
  set.shards = set.world;
  WindowGradient window;
  window.counts_by_rank = counts;
  int64_t offset = 0;
  for (const NamedTensor& parameter : parameters_) {
    const int64_t size = parameter.tensor.numel();
    window.total.push_back({parameter.name, flat.narrow(0, offset, size)});
    offset += size;
  }
  set.windows.push_back(std::move(window));
  return set;
}

ModelStep ModelExercise::step(const std::vector<int64_t>& counts) {
  std::vector<Batch> batches;
  std::vector<std::vector<at::Tensor>> all;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    batches.push_back(batch(rank, counts[rank]));
    all.push_back(losses(rank, batches.back()));
  }
  std::vector<at::Tensor> shares = reference_shares(batches, all);
  const at::Tensor total = at::stack(shares).sum(0);
  GradientSet reference = gradient_set("one device", total, counts);
  reference.world = 1;
  reference.windows.front().by_shard = std::move(shares);
  ModelStep result;
  result.counts = counts;
  result.reference_norm = total.norm().item<double>();
  for (const run::Job* job : reducers_) {
    at::Tensor sum;
    for (const at::Tensor& objective : reduced(*job, terms_, batches, all)) {
      const at::Tensor of_rank = gradient(objective);
      sum = sum.defined() ? sum + of_rank : of_rank;
    }
    sum = sum / static_cast<double>(divisor_of(*job, counts.size()));
    result.reducers.push_back(
        {sum.norm().item<double>(),
         compare_gradients(reference, gradient_set(job->settings.name, sum, counts))});
  }
  return result;
}

}  // namespace tally::verify
