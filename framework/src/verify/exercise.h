#pragma once

#include "run/job.h"
#include "verify/loss_check.h"
#include "verify/parity.h"

#include <c10/core/Device.h>

#include <vector>

/// What becomes of a window when one rank gets more tokens: by arithmetic, and in the real model.
namespace tally::verify {

/// Rank 0 keeps 12 tokens of loss 1; rank 1 has 12, then 36, of loss 3.
HandWindow exercise_window(int64_t tokens_of_rank_1);

/// A reducer's gradient of the real model, and how far it is from one device's.
struct ModelGradient {
  double norm = 0.0;
  Parity parity;
};

/// The gradients of one window of two ranks, one sequence each, of which the first `counts[r]`
/// positions are supervised.
struct ModelStep {
  std::vector<int64_t> counts;
  double reference_norm = 0.0;          ///< Of  grad (S_0 + S_1) / N,  without any reducer.
  std::vector<ModelGradient> reducers;  ///< In the order in which they were given.
};

/// Computes model steps in this process, with the model and data of one job and the reducers of
/// several, each under its own policy's divisor. The jobs outlive it. The data must be prepared and
/// is opened here.
class ModelExercise {
 public:
  /// Picks the first two training examples with at least `longest` supervised positions. Throws
  /// DataError when there are not two, or no prepared data.
  ModelExercise(run::Job& model, std::vector<const run::Job*> reducers, int64_t longest);

  ModelStep step(const std::vector<int64_t>& counts);
  const std::vector<ExampleId>& examples() const { return examples_; }

 private:
  void choose_examples(int64_t longest);
  Batch batch(size_t rank, int64_t count);
  std::vector<at::Tensor> losses(size_t rank, const Batch& batch);
  std::vector<at::Tensor> reference_shares(const std::vector<Batch>& batches,
                                           const std::vector<std::vector<at::Tensor>>& losses);
  at::Tensor gradient(const at::Tensor& objective);
  GradientSet gradient_set(const std::string& recipe, const at::Tensor& flat,
                           const std::vector<int64_t>& counts) const;

  run::Job& model_;
  std::vector<const run::Job*> reducers_;
  c10::Device device_;
  Digest data_;
  std::vector<NamedTensor> parameters_;
  std::vector<TermInfo> terms_;
  std::vector<ExampleId> examples_;
};

}  // namespace tally::verify
