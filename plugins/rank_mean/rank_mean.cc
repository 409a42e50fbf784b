#include <tally/plugin.h>

namespace tally {
namespace {

/// The mean over ranks of each rank's own mean: a known error, kept on purpose, so that a check
/// which cannot tell it from token_mean is seen to be blind.
///
/// A microbatch's sum is multiplied by c * divisor / (W * n_rank). A position on a rank with few
/// of them then weighs more than one on a rank with many. With one rank, or with equally many
/// positions on every rank, it equals token_mean.
class RankMean final : public LossReducer {
 public:
  explicit RankMean(Context& /*context*/) {}

  std::vector<double> scale(const std::vector<TermInfo>& terms,
                            const std::vector<TermCounts>& counts,
                            const Aggregation& aggregation) const override {
    std::vector<double> scales;
    for (size_t t = 0; t < terms.size(); ++t) {
      const double denominator =
          static_cast<double>(aggregation.world) * static_cast<double>(counts[t].local);
      scales.push_back(denominator == 0.0
                           ? 0.0
                           : terms[t].coefficient * static_cast<double>(aggregation.divisor) /
                                 denominator);
    }
    return scales;
  }
};

}  // namespace
}  // namespace tally

TALLY_PLUGIN("rank_mean", "0.1.0", tally::hook<tally::RankMean>("rank_mean"))
