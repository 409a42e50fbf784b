#include "train/evaluation.h"

#include "train/losses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace tally::train {
namespace {

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("{}[{}]", c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ", "));
}

using plugin::Hooked;

std::vector<NamedTensor> state_of(const Hooked<Task>& task) {
  return task.call([](Task& hook) {
    std::vector<NamedTensor> state = hook.parameters();
    for (NamedTensor& buffer : hook.buffers()) state.push_back(std::move(buffer));
    return state;
  });
}

/// What keeps `saved` from being the values of `wanted`; empty when nothing does.
std::vector<std::string> differences(const std::vector<NamedTensor>& wanted,
                                     const std::map<std::string, at::Tensor>& saved) {
  std::vector<std::string> found;
  std::map<std::string, at::Tensor> unexpected = saved;
  for (const NamedTensor& named : wanted) {
    const auto value = saved.find(named.name);
    if (value == saved.end()) {
      found.push_back(fmt::format("'{}' is missing", named.name));
    } else if (shape_of(value->second) != shape_of(named.tensor)) {
      found.push_back(fmt::format("'{}' is {} and should be {}", named.name,
                                  shape_of(value->second), shape_of(named.tensor)));
    }
    unexpected.erase(named.name);
  }
  for (const auto& [name, tensor] : unexpected)
    found.push_back(fmt::format("'{}' is unexpected", name));
  return found;
}

void add_batch(const Hooked<Task>& task, const Hooked<LossReducer>& reducer, const Batch& batch,
               c10::Device device, Evaluation& result) {
  const std::vector<int64_t> counts = reducer.call([&](const LossReducer& hook) {
    std::vector<int64_t> found = hook.count(batch);
    if (found.size() != result.terms.size())
      throw PluginError("count must return one number a term");
    return found;
  });
  const Batch moved = on_device(batch, device);
  const std::vector<at::Tensor> losses = forward(task, moved);
  for (size_t t = 0; t < result.terms.size(); ++t) {
    result.terms[t].sum += weighted_sum(losses[t], moved.terms[t].weights).item<double>();
    result.terms[t].count += counts[t];
  }
  for (const auto& [name, measure] : task.call([&](Task& hook) { return hook.evaluate(moved); })) {
    result.measures[name].sum += measure.sum;
    result.measures[name].count += measure.count;
  }
}

}  // namespace

void load_model(const Hooked<Task>& task, const std::vector<NamedTensor>& model,
                const std::string& source) {
  const std::vector<NamedTensor> state = state_of(task);
  std::map<std::string, at::Tensor> saved;
  for (const NamedTensor& named : model) saved.emplace(named.name, named.tensor);
  std::vector<std::string> wrong = differences(state, saved);
  if (!wrong.empty()) {
    constexpr size_t kShown = 5;
    const size_t hidden = wrong.size() - std::min(wrong.size(), kShown);
    wrong.resize(wrong.size() - hidden);
    throw DataError(fmt::format(
        "the model in {} is not that of {}: {}{}; use the recipe that it was trained with", source,
        task.identity().text(), fmt::join(wrong, ", "),
        hidden == 0 ? "" : fmt::format(" and {} more", hidden)));
  }
  const torch::NoGradGuard no_grad;
  for (const NamedTensor& named : state) named.tensor.copy_(saved.at(named.name));
}

Evaluation evaluate(const Hooked<Task>& task, const Hooked<LossReducer>& reducer,
                    const std::string& split, int64_t batch_size, c10::Device device) {
  const torch::NoGradGuard no_grad;
  Evaluation result;
  result.split = split;
  for (const TermInfo& info : task.call([](Task& hook) { return hook.terms(); }))
    result.terms.push_back({.info = info});
  const ExampleTable table = task.call([&](Task& hook) { return hook.examples(split); });
  result.sequences = static_cast<int64_t>(table.lengths.size());
  task.call([](Task& hook) { hook.set_training(false); });
  for (int64_t start = 0; start < result.sequences; start += batch_size) {
    Microbatch examples(static_cast<size_t>(std::min(batch_size, result.sequences - start)));
    std::iota(examples.begin(), examples.end(), start);
    const Batch batch = task.call([&](Task& hook) { return hook.load(split, examples, {}); });
    add_batch(task, reducer, batch, device, result);
  }
  for (const TermEvaluation& term : result.terms) {
    if (term.count == 0) {
      throw DataError(fmt::format(
          "the split '{}' supervises nothing for the term '{}', so it has no loss; check the data "
          "and the task's options",
          split, term.info.name));
    }
    result.loss += term.info.coefficient * term.mean();
  }
  return result;
}

}  // namespace tally::train
