#pragma once

#include "plugin/hooked.h"

#include <c10/core/Device.h>
#include <tally/loss_reducer.h>
#include <tally/task.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tally::train {

/// One term of the loss over a whole split.
struct TermEvaluation {
  TermInfo info;
  double sum = 0.0;   ///< S, as the reducer reduces.
  int64_t count = 0;  ///< N, in the reducer's unit.
  double mean() const { return sum / static_cast<double>(count); }
};

struct Evaluation {
  std::string split;
  int64_t sequences = 0;
  double loss = 0.0;  ///< sum over terms of coefficient * S / N
  std::vector<TermEvaluation> terms;
  Measures measures;  ///< Of Task::evaluate, added over batches.
};

/// What one batch adds to an evaluation.
struct BatchResult {
  std::vector<double> sums;     ///< S of each term.
  std::vector<int64_t> counts;  ///< N of each term.
  Measures measures;
};

/// A split cut into batches of at most `batch_size` examples, in their order.
struct SplitBatches {
  std::string split;
  int64_t sequences = 0;
  int64_t batch_size = 1;

  int64_t size() const { return (sequences + batch_size - 1) / batch_size; }
  Microbatch examples(int64_t batch) const;
};
/// Throws DataError for a split without examples.
SplitBatches batches_of(const plugin::Hooked<Task>& task, const std::string& split,
                        int64_t batch_size);

/// Throws DataError when nothing of a term is supervised in the whole split. Loads batches only
/// until something of each term is.
void require_supervision(const plugin::Hooked<Task>& task,
                         const plugin::Hooked<LossReducer>& reducer, const SplitBatches& batches,
                         const std::vector<TermInfo>& terms);

/// Runs a batch, of which `counts` are the N, without gradients; the reducer sums its losses. The
/// task must be on `device` and not in training. [trainer]
BatchResult evaluate_batch(const plugin::Hooked<Task>& task,
                           const plugin::Hooked<LossReducer>& reducer, const Batch& batch,
                           std::vector<int64_t> counts, c10::Device device);

/// Adds up the batches of a split in their order, so that who ran them changes no bit. Throws
/// DataError when nothing of a term is supervised.
Evaluation add_up(const SplitBatches& batches, const std::vector<TermInfo>& terms,
                  const std::vector<BatchResult>& results);

/// One JSON object: split, sequences, loss, terms, measures.
std::string to_json(const Evaluation& evaluation);

/// Runs the task over all examples of a split, in their order, `batch_size` at a time, without
/// gradients. The task must be on `device` and its data opened. Throws DataError when nothing of a
/// term is supervised.
Evaluation evaluate(const plugin::Hooked<Task>& task, const plugin::Hooked<LossReducer>& reducer,
                    const std::string& split, int64_t batch_size, c10::Device device);

}  // namespace tally::train
