#pragma once

#include <tally/hook.h>
#include <tally/types.h>

#include <cstddef>
#include <vector>

namespace tally {

/// Counts, scales and reduces the loss. One a recipe (`[loss_reducer]`).
///
/// The gradient of a window should be  sum over t of c_t * (sum over r of grad S_t,r) / N_t, with
/// S_t,r the term's sum over rank r's window and N_t its count over all ranks. The host sums the
/// ranks' gradients and divides by the policy's divisor; a reducer's scale undoes just that.
class LossReducer : public Hook {
 public:
  /// Denominator of each term in this microbatch, in the order of batch.terms, each at least 0.
  /// Taken on the very weights that `reduce` uses. The host adds them over the window and over
  /// ranks in int64. [loader, on the CPU batch]
  virtual std::vector<int64_t> count(const Batch& batch) const {
    std::vector<int64_t> counts;
    for (const Term& term : batch.terms) counts.push_back(term.weights.ne(0).sum().item().toLong());
    return counts;
  }

  /// What count() counts of a term, in the singular, as metrics and evaluations name it: "token",
  /// "sequence", ... Constant. [before the loader starts]
  virtual std::string unit(const TermInfo& term) const { return term.unit; }

  /// true: made for terms whose S over a window is not the sum of its microbatches' values
  /// (TermInfo::additive). The host refuses every other reducer for a task with such a term.
  virtual bool takes_non_additive() const { return false; }

  /// What a microbatch's sum of each term is multiplied by, in double precision; the host rounds it
  /// once to the loss's dtype. Plain arithmetic on plain numbers: no tensor, no state. `terms`,
  /// `counts` and the result are in the same order. [trainer]
  virtual std::vector<double> scale(const std::vector<TermInfo>& terms,
                                    const std::vector<TermCounts>& counts,
                                    const Aggregation& aggregation) const = 0;

  /// The scalar to differentiate: sum over t of scale_t * sum of where(w != 0, w * loss, 0).
  /// Unsupervised positions are selected away, never multiplied by zero, so a NaN in a loss there
  /// reaches neither the value nor the gradient of the losses. `losses`: one tensor a term, shaped
  /// like its weights; `scales`: [terms], of the losses' dtype and device. Reads device tensors
  /// only and never waits for the device, so it may be captured in a CUDA graph.
  ///
  /// Linear in `scales`: the host also asks for the S of one term that metrics and evaluations show
  /// beside N, without gradients, with losses in float64, this term's scale 1, and losses and
  /// scales of the others 0. [trainer]
  virtual at::Tensor reduce(const Batch& batch, const std::vector<at::Tensor>& losses,
                            const at::Tensor& scales) const {
    at::Tensor total;
    for (size_t t = 0; t < losses.size(); ++t) {
      const at::Tensor& weights = batch.terms[t].weights;
      const at::Tensor sum = losses[t]
                                 .mul(weights)
                                 .where(weights.ne(0), 0)
                                 .sum()
                                 .mul(scales.select(0, static_cast<int64_t>(t)));
      total = total.defined() ? total.add(sum) : sum;
    }
    return total;
  }
};

}  // namespace tally
