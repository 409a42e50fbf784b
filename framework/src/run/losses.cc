#include "run/losses.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>

namespace tally::run {

Batch on_device(const Batch& batch, c10::Device device) {
  if (device.is_cpu()) return batch;
  const auto move = [&](at::Tensor& tensor) { tensor = tensor.to(device, /*non_blocking=*/true); };
  Batch moved = batch;
  for (NamedTensor& input : moved.inputs) move(input.tensor);
  for (Term& term : moved.terms) {
    move(term.weights);
    if (term.documents) move(*term.documents);
  }
  return moved;
}

std::vector<int64_t> count(const plugin::Hooked<LossReducer>& reducer, const Batch& batch,
                           size_t terms) {
  if (batch.terms.size() != terms) {
    throw PluginError(
        fmt::format("a batch of the task has {} terms of {}; give every term in every "
                    "batch, also in one that supervises nothing for it",
                    batch.terms.size(), terms));
  }
  return reducer.call([&](const LossReducer& hook) {
    std::vector<int64_t> counts = hook.count(batch);
    const bool negative =
        std::any_of(counts.begin(), counts.end(), [](int64_t n) { return n < 0; });
    if (counts.size() != terms || negative) {
      throw PluginError(
          fmt::format("counted {} terms of {}, or a negative number; count every term of the batch",
                      counts.size(), terms));
    }
    return counts;
  });
}

std::vector<at::Tensor> forward(const plugin::Hooked<Task>& task, const Batch& batch) {
  return task.call([&](Task& hook) {
    std::vector<at::Tensor> losses = hook.forward(batch);
    bool valid = losses.size() == batch.terms.size();
    for (size_t t = 0; valid && t < losses.size(); ++t)
      valid = losses[t].sizes() == batch.terms[t].weights.sizes();
    if (!valid)
      throw PluginError("forward must return one loss a term, each shaped like the term's weights");
    return losses;
  });
}

at::Tensor weighted_sum(const at::Tensor& losses, const at::Tensor& weights) {
  return (losses * weights).where(weights != 0, 0).sum(at::kDouble);
}

}  // namespace tally::run
