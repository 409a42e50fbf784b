#pragma once

#include "run/rank_session.h"
#include "train/evaluation.h"
#include "train/prepared.h"

#include <optional>
#include <vector>

namespace tally::train {

/// The evaluations during a run: in each step every rank runs one batch, and after the last all
/// ranks have the sum over the split, to the bit that of one rank.
class EvaluationSteps {
 public:
  /// Throws DataError for a split without examples, or in which nothing is supervised. [trainer]
  explicit EvaluationSteps(run::RankSession& session);

  /// nullopt when the recipe asks for no evaluation.
  const std::optional<SplitBatches>& batches() const { return batches_; }
  /// Runs a step. Returns the evaluation after the last one. Throws PluginError when a batch gives
  /// other measures than the first one, on this rank or another. [trainer, every rank]
  std::optional<Evaluation> run(const EvaluationPass& pass);

 private:
  /// One row of int64 words a step: sums and counts of terms and measures.
  void append(const BatchResult& result);
  void require_same_measures() const;
  std::vector<BatchResult> gather() const;

  run::RankSession& session_;
  std::optional<SplitBatches> batches_;
  std::vector<std::string> measures_;
  std::vector<int64_t> words_;
};

}  // namespace tally::train
