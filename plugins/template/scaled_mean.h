#pragma once

#include <tally/plugin.h>

/// The mean over all supervised positions of the window, times the option `factor` of
/// `[loss_reducer]` (default 1, greater than 0).
class ScaledMean final : public tally::LossReducer {
 public:
  /// Options are read here: what nobody has read when the hooks are made is reported as unknown.
  explicit ScaledMean(tally::Context& context) : factor_(context.config().number("factor", 1.0)) {
    if (!(factor_ > 0.0)) context.config().reject("factor", "must be greater than 0");
  }

  std::vector<double> scale(const std::vector<tally::TermInfo>& terms,
                            const std::vector<tally::TermCounts>& counts,
                            const tally::Aggregation& aggregation) const override {
    std::vector<double> scales;
    for (size_t t = 0; t < terms.size(); ++t) {
      const auto global = static_cast<double>(counts[t].global);
      const auto divisor = static_cast<double>(aggregation.divisor);
      scales.push_back(global == 0.0 ? 0.0 : factor_ * terms[t].coefficient * divisor / global);
    }
    return scales;
  }

 private:
  double factor_;
};
