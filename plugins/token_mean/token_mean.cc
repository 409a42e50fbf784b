#include <tally/plugin.h>

namespace tally {
namespace {

/// The mean over all supervised positions of the window, on whatever rank they are.
///
/// A microbatch's sum is multiplied by c * divisor / N. The policy divides the ranks' sum by
/// divisor, so what reaches the parameters is c * S / N: the gradient that one device would have
/// computed from the whole window.
class TokenMean final : public LossReducer {
 public:
  explicit TokenMean(Context& /*context*/) {}

  std::vector<double> scale(const std::vector<TermInfo>& terms,
                            const std::vector<TermCounts>& counts,
                            const Aggregation& aggregation) const override {
    std::vector<double> scales;
    for (size_t t = 0; t < terms.size(); ++t) {
      const int64_t global = counts[t].global;
      scales.push_back(global == 0
                           ? 0.0
                           : terms[t].coefficient * static_cast<double>(aggregation.divisor) /
                                 static_cast<double>(global));
    }
    return scales;
  }
};

}  // namespace
}  // namespace tally

TALLY_PLUGIN("token_mean", "0.1.0", tally::hook<tally::TokenMean>("token_mean"))
