#include "train/evaluation_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <bit>
#include <cstring>

namespace tally::train {
namespace {

using distributed::CollectiveKind;

std::vector<std::string> names_of(const Measures& measures) {
  std::vector<std::string> names;
  for (const auto& [name, measure] : measures) names.push_back(name);
  return names;
}

}  // namespace

EvaluationSteps::EvaluationSteps(run::RankSession& session) : session_(session) {
  const run::Settings& settings = session.job().settings;
  if (settings.evaluate_every == 0) return;
  batches_ =
      batches_of(session.job().task, settings.evaluation_split, settings.evaluation_batch_size);
  require_supervision(session.job().task, session.job().reducer, *batches_, session.terms());
}

std::optional<Evaluation> EvaluationSteps::run(const EvaluationPass& pass) {
  session_.board().phase(distributed::Phase::kEvaluating);
  run::Job& job = session_.job();
  if (pass.step == 0) {
    words_.clear();
    measures_.clear();
    job.task.call([](Task& task) { task.set_training(false); });
  }
  const BatchResult result =
      evaluate_batch(job.task, job.reducer, pass.batch, pass.counts, session_.device());
  if (pass.step == 0) measures_ = names_of(result.measures);
  if (names_of(result.measures) != measures_) {
    throw PluginError(fmt::format(
        "{} measured '{}' on one batch and '{}' on the first; measure the same on every batch",
        job.task.identity().text(), fmt::join(names_of(result.measures), "', '"),
        fmt::join(measures_, "', '")));
  }
  append(result);
  if (pass.step + 1 < pass.steps) return std::nullopt;
  job.task.call([](Task& task) { task.set_training(true); });
  return add_up(*batches_, session_.terms(), gather());
}

void EvaluationSteps::append(const BatchResult& result) {
  for (const double sum : result.sums) words_.push_back(std::bit_cast<int64_t>(sum));
  words_.insert(words_.end(), result.counts.begin(), result.counts.end());
  for (const auto& [name, measure] : result.measures) {
    words_.push_back(std::bit_cast<int64_t>(measure.sum));
    words_.push_back(measure.count);
  }
}

/// Before the results: ranks that send different lengths end each other without a reason.
void EvaluationSteps::require_same_measures() const {
  Sha256 hash;
  for (const std::string& name : measures_) hash.update(name).update("\n");
  const std::vector<int64_t> others = run::ranks_unlike_the_first(
      session_.groups().gradients, hash.finish(), CollectiveKind::kEvaluation, session_.device());
  if (others.empty()) return;
  throw PluginError(fmt::format(
      "{} measured other things on the batches of rank {} than on rank 0's; here '{}'. Measure the "
      "same on every batch",
      session_.job().task.identity().text(), fmt::join(others, ", "),
      fmt::join(measures_, "', '")));
}

std::vector<BatchResult> EvaluationSteps::gather() const {
  require_same_measures();
  const auto size = static_cast<int64_t>(words_.size());
  const at::Tensor mine = at::empty({size}, at::kLong);
  std::memcpy(mine.data_ptr(), words_.data(), words_.size() * sizeof(int64_t));
  const at::Tensor all =
      session_.groups().gradients.gather(mine, CollectiveKind::kEvaluation, 0, session_.device());
  const size_t terms = session_.terms().size();
  const size_t width = 2 * (terms + measures_.size());
  const auto* words = all.const_data_ptr<int64_t>();
  std::vector<BatchResult> results;
  for (int64_t batch = 0; batch < batches_->size(); ++batch) {
    const int64_t* row = words + batch % session_.world() * size +
                         batch / session_.world() * static_cast<int64_t>(width);
    BatchResult& result = results.emplace_back();
    for (size_t t = 0; t < terms; ++t) {
      result.sums.push_back(std::bit_cast<double>(row[t]));
      result.counts.push_back(row[terms + t]);
    }
    for (size_t m = 0; m < measures_.size(); ++m) {
      const int64_t* measure = row + 2 * (terms + m);
      result.measures[measures_[m]] = {std::bit_cast<double>(measure[0]), measure[1]};
    }
  }
  return results;
}

}  // namespace tally::train
