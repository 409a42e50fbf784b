#pragma once

#include <tally/loss_reducer.h>
#include <torch/torch.h>

namespace tally {

/// The mean over sequences of each sequence's own mean: counts rows, and reduces to the sum of
/// their means.
class SequenceMean final : public LossReducer {
 public:
  std::vector<int64_t> count(const Batch& batch) const override {
    std::vector<int64_t> counts;
    for (const Term& term : batch.terms)
      counts.push_back(per_row(term.weights).sum(1).gt(0).sum().item<int64_t>());
    return counts;
  }
  std::string unit(const TermInfo& /*term*/) const override { return "sequence"; }
  std::vector<double> scale(const std::vector<TermInfo>& terms,
                            const std::vector<TermCounts>& counts,
                            const Aggregation& aggregation) const override {
    std::vector<double> scales;
    for (size_t t = 0; t < terms.size(); ++t) {
      const auto global = static_cast<double>(counts[t].global);
      scales.push_back(global == 0.0 ? 0.0
                                     : terms[t].coefficient *
                                           static_cast<double>(aggregation.divisor) / global);
    }
    return scales;
  }
  at::Tensor reduce(const Batch& batch, const std::vector<at::Tensor>& losses,
                    const at::Tensor& scales) const override {
    at::Tensor total = at::zeros({}, scales.options());
    for (size_t t = 0; t < losses.size(); ++t) {
      const at::Tensor weights = per_row(batch.terms[t].weights);
      const at::Tensor sums = per_row(losses[t]).mul(weights).where(weights.ne(0), 0).sum(1) /
                              weights.sum(1).clamp_min(1e-30);
      total = total + sums.sum() * scales[static_cast<int64_t>(t)];
    }
    return total;
  }

 private:
  static at::Tensor per_row(const at::Tensor& tensor) {
    return tensor.reshape({tensor.size(0), -1});
  }
};

}  // namespace tally
