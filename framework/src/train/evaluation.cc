#include "train/evaluation.h"

#include "report/json_number.h"
#include "run/losses.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace tally::train {

using plugin::Hooked;

namespace {

[[noreturn]] void reject_unsupervised(const std::string& split, const TermInfo& term) {
  throw DataError(fmt::format(
      "the split '{}' supervises nothing for the term '{}', so it has no loss; check the data and "
      "the task's options",
      split, term.name));
}

}  // namespace

Microbatch SplitBatches::examples(int64_t batch) const {
  const int64_t start = batch * batch_size;
  Microbatch ids(static_cast<size_t>(std::min(batch_size, sequences - start)));
  std::iota(ids.begin(), ids.end(), start);
  return ids;
}

SplitBatches batches_of(const Hooked<Task>& task, const std::string& split, int64_t batch_size) {
  const ExampleTable table = task.call([&](Task& hook) { return hook.examples(split); });
  if (table.lengths.empty()) {
    throw DataError(
        fmt::format("the split '{}' of {} has no example, so there is nothing to evaluate", split,
                    task.identity().text()));
  }
  const auto sequences = static_cast<int64_t>(table.lengths.size());
  return {split, sequences, std::min(batch_size, sequences)};
}

void require_supervision(const Hooked<Task>& task, const Hooked<LossReducer>& reducer,
                         const SplitBatches& batches, const std::vector<TermInfo>& terms) {
  std::vector<int64_t> counts(terms.size(), 0);
  const auto missing = [&] { return std::find(counts.begin(), counts.end(), 0); };
  for (int64_t batch = 0; batch < batches.size() && missing() != counts.end(); ++batch) {
    const Batch loaded = task.call([&](const Task& hook) {
      return hook.load(batches.split, batches.examples(batch), std::nullopt);
    });
    const std::vector<int64_t> more = run::count(reducer, loaded, terms.size());
    for (size_t t = 0; t < terms.size(); ++t) counts[t] += more[t];
  }
  if (missing() != counts.end())
    reject_unsupervised(batches.split, terms[static_cast<size_t>(missing() - counts.begin())]);
}

BatchResult evaluate_batch(const Hooked<Task>& task, const Hooked<LossReducer>& reducer,
                           const Batch& batch, std::vector<int64_t> counts, c10::Device device) {
  const torch::NoGradGuard no_grad;
  BatchResult result;
  result.counts = std::move(counts);
  const Batch moved = run::on_device(batch, device);
  const at::Tensor sums =
      run::term_sums(reducer, moved, run::forward(task, moved)).to(at::kCPU).contiguous();
  const auto* data = sums.const_data_ptr<double>();
  result.sums.assign(data, data + sums.numel());
  result.measures = task.call([&](Task& hook) { return hook.evaluate(moved); });
  return result;
}

Evaluation add_up(const SplitBatches& batches, const std::vector<TermInfo>& terms,
                  const std::vector<BatchResult>& results) {
  Evaluation evaluation;
  evaluation.split = batches.split;
  evaluation.sequences = batches.sequences;
  for (const TermInfo& info : terms) evaluation.terms.push_back({.info = info});
  for (const BatchResult& result : results) {
    for (size_t t = 0; t < terms.size(); ++t) {
      evaluation.terms[t].sum += result.sums[t];
      evaluation.terms[t].count += result.counts[t];
    }
    for (const auto& [name, measure] : result.measures) {
      evaluation.measures[name].sum += measure.sum;
      evaluation.measures[name].count += measure.count;
    }
  }
  for (const TermEvaluation& term : evaluation.terms) {
    if (term.count == 0) reject_unsupervised(batches.split, term.info);
    evaluation.loss += term.info.coefficient * term.mean();
  }
  return evaluation;
}

Evaluation evaluate(const Hooked<Task>& task, const Hooked<LossReducer>& reducer,
                    const std::string& split, int64_t batch_size, c10::Device device) {
  const SplitBatches batches = batches_of(task, split, batch_size);
  const std::vector<TermInfo> terms = run::terms_of(task, reducer);
  task.call([](Task& hook) { hook.set_training(false); });
  std::vector<BatchResult> results;
  for (int64_t i = 0; i < batches.size(); ++i) {
    const Batch batch =
        task.call([&](Task& hook) { return hook.load(split, batches.examples(i), std::nullopt); });
    results.push_back(
        evaluate_batch(task, reducer, batch, run::count(reducer, batch, terms.size()), device));
  }
  return add_up(batches, terms, results);
}

std::string to_json(const Evaluation& evaluation) {
  using nlohmann::json;
  json terms = json::array();
  for (const TermEvaluation& term : evaluation.terms) {
    terms.push_back({{"name", term.info.name},
                     {"unit", term.info.unit},
                     {"coefficient", term.info.coefficient},
                     {"sum", report::number(term.sum)},
                     {"count", term.count},
                     {"mean", report::number(term.mean())}});
  }
  json measures = json::object();
  for (const auto& [name, measure] : evaluation.measures) {
    measures[name] = {{"sum", report::number(measure.sum)},
                      {"count", measure.count},
                      {"mean", report::number(measure.sum / static_cast<double>(measure.count))}};
  }
  return json{{"split", evaluation.split},
              {"sequences", evaluation.sequences},
              {"loss", report::number(evaluation.loss)},
              {"terms", terms},
              {"measures", measures}}
      .dump();
}

}  // namespace tally::train
