#pragma once

#include <tally/loss_reducer.h>

#include <string>
#include <vector>

/// What a reducer makes of windows that can be computed by hand.
namespace tally::verify {

/// A microbatch of equal losses.
struct HandBatch {
  int64_t tokens = 0;  ///< Supervised positions.
  double loss = 0.0;   ///< Of each of them.
};

/// The microbatches of each rank.
using HandWindow = std::vector<std::vector<HandBatch>>;

/// The two formulas that a window of the hand is compared with.
double global_mean(const HandWindow& window);    ///< sum of all losses / all tokens
double mean_of_means(const HandWindow& window);  ///< mean over ranks of each rank's own mean

/// What a reducer gave for a window, by rank where it is a list.
struct ReducedWindow {
  std::vector<int64_t> tokens;         ///< From count().
  std::vector<double> sums;            ///< Of the supervised losses.
  std::vector<double> contributions;   ///< Sum of reduce() over the rank's microbatches.
  std::vector<double> weights;         ///< What one token's loss weighs in the objective.
  double objective = 0.0;              ///< sum of contributions / divisor
  double unsupervised_gradient = 0.0;  ///< Largest |gradient| that reached an unsupervised loss.
};

/// Counts, scales and reduces the window as the trainer would, with as many ranks as it has, in
/// float64. Every batch also has unsupervised positions whose loss is NaN. Weights are the
/// gradients of the losses.
ReducedWindow reduce_by_hand(const LossReducer& reducer, const HandWindow& window, int64_t divisor);

/// One parameter at 0, squared error, 12 targets +1 on rank 0 and 36 targets -1 on rank 1.
struct OneParameter {
  std::vector<double> losses;  ///< Mean over the rank's own targets.
  double gradient = 0.0;       ///< By autograd through reduce().
};
OneParameter one_parameter_example(const LossReducer& reducer, int64_t divisor);

/// Which formula a reducer must follow.
enum class Formula { kGlobalMean, kMeanOfMeans, kNotGlobalMean };
const char* name_of(Formula formula);

/// A reducer through all windows of the hand, on two ranks.
struct LossCheck {
  std::string recipe;
  std::string reducer;
  Formula expected = Formula::kGlobalMean;
  int64_t divisor = 0;
  ReducedWindow unequal;           ///< 12 tokens of loss 1, 36 of loss 3.
  ReducedWindow two_microbatches;  ///< The same in microbatches of 4 + 8 and 12 + 24.
  double divided_again = 0.0;      ///< two_microbatches, divided once more by the accumulation.
  ReducedWindow equal_counts;      ///< Blind spot: 24 tokens each.
  ReducedWindow equal_means;       ///< Blind spot: loss 2 everywhere.
  OneParameter one_parameter;
  std::vector<std::string> unexpected;  ///< A sentence for each number that is not as expected.
  bool as_expected() const { return unexpected.empty(); }
};

HandWindow unequal_window();
HandWindow two_microbatch_window();
HandWindow equal_counts_window();
HandWindow equal_means_window();

LossCheck check_loss(const LossReducer& reducer, int64_t divisor, Formula expected);

}  // namespace tally::verify
