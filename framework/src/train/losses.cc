#include "train/losses.h"

#include <tally/error.h>
#include <torch/torch.h>

namespace tally::train {

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

}  // namespace tally::train
