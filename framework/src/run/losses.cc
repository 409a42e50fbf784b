#include "run/losses.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <utility>

namespace tally::run {

std::vector<TermInfo> terms_of(const plugin::Hooked<Task>& task,
                               const plugin::Hooked<LossReducer>& reducer) {
  std::vector<TermInfo> terms = task.call([](Task& hook) { return hook.terms(); });
  if (terms.empty()) throw PluginError(task.identity().text() + " declares no term of the loss");
  reducer.call([&](const LossReducer& hook) {
    for (TermInfo& term : terms) {
      if (!term.additive && !hook.takes_non_additive()) {
        throw PluginError(fmt::format(
            "adds up the sums of microbatches, but the term '{}' of {} is not additive over them; "
            "use a loss reducer made for it",
            term.name, task.identity().text()));
      }
      term.unit = hook.unit(term);
    }
  });
  return terms;
}

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

at::Tensor reduce(const plugin::Hooked<LossReducer>& reducer, const Batch& batch,
                  const std::vector<at::Tensor>& losses, const at::Tensor& scales) {
  return reducer.call([&](const LossReducer& hook) {
    at::Tensor result = hook.reduce(batch, losses, scales);
    if (!result.defined() || result.dim() != 0)
      throw PluginError("reduce must return a scalar tensor");
    return result;
  });
}

at::Tensor term_sums(const plugin::Hooked<LossReducer>& reducer, const Batch& batch,
                     const std::vector<at::Tensor>& losses) {
  const torch::NoGradGuard no_grad;
  // One term at a time, the others' losses zero: a NaN in one of them is not this term's.
  std::vector<at::Tensor> alone;
  for (const at::Tensor& loss : losses)
    alone.push_back(losses.size() == 1 ? loss : at::zeros_like(loss, at::kDouble));
  const auto terms = static_cast<int64_t>(losses.size());
  const at::Tensor scales = at::eye(terms, losses.front().options().dtype(at::kDouble));
  std::vector<at::Tensor> sums;
  for (size_t t = 0; t < losses.size(); ++t) {
    const at::Tensor zeros = std::exchange(alone[t], losses[t].detach().to(at::kDouble));
    sums.push_back(reduce(reducer, batch, alone, scales.select(0, static_cast<int64_t>(t))));
    alone[t] = zeros;
  }
  return at::stack(sums).to(at::kDouble);
}

}  // namespace tally::run
