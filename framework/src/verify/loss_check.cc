#include "verify/loss_check.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tally::verify {
namespace {

/// A reducer may round to single precision on its way.
constexpr double kSame = 1e-6;
constexpr int64_t kUnsupervised = 3;

const std::vector<TermInfo>& terms() {
  static const std::vector<TermInfo> kTerms{{.name = "loss", .unit = "token"}};
  return kTerms;
}

bool near(double a, double b) { return std::abs(a - b) <= kSame; }

/// One row: the supervised positions first.
Batch batch_of(int64_t tokens) {
  const at::Tensor weights = at::zeros({1, tokens + kUnsupervised}, at::kDouble);
  weights.narrow(1, 0, tokens).fill_(1.0);
  return {.examples = {0},
          .inputs = {},
          .terms = {{.name = "loss", .weights = weights, .documents = std::nullopt}}};
}

at::Tensor losses_of(const HandBatch& batch) {
  const at::Tensor losses = at::full({1, batch.tokens + kUnsupervised},
                                     std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  losses.narrow(1, 0, batch.tokens).fill_(batch.loss);
  return losses.requires_grad_(true);
}

int64_t count_of(const LossReducer& reducer, const Batch& batch) {
  const std::vector<int64_t> counts = reducer.count(batch);
  if (counts.size() != 1) throw PluginError("count must return one number a term");
  return counts.front();
}

double scale_of(const LossReducer& reducer, const TermCounts& counts, const Aggregation& ranks) {
  const std::vector<double> scales = reducer.scale(terms(), {counts}, ranks);
  if (scales.size() != 1) throw PluginError("scale must return one number a term");
  return scales.front();
}

struct ReducedBatch {
  double value = 0.0;
  double weight = 0.0;                 ///< Gradient of each supervised loss; NaN if they differ.
  double unsupervised_gradient = 0.0;  ///< Largest |gradient| of the others.
};

/// NaN unless all are the same: tokens of a rank that weigh differently have no one weight.
double common_value(const at::Tensor& values) {
  return values.max().equal(values.min()) ? values.max().item<double>()
                                          : std::numeric_limits<double>::quiet_NaN();
}

ReducedBatch reduce_batch(const LossReducer& reducer, const HandBatch& hand, double scale) {
  const Batch batch = batch_of(hand.tokens);
  const at::Tensor losses = losses_of(hand);
  const at::Tensor value = reducer.reduce(batch, {losses}, at::full({1}, scale, at::kDouble));
  value.backward();
  return {value.item<double>(), common_value(losses.grad().narrow(1, 0, hand.tokens)),
          losses.grad().narrow(1, hand.tokens, kUnsupervised).abs().max().item<double>()};
}

std::vector<double> expected_weights(const HandWindow& window, Formula formula) {
  std::vector<double> tokens;
  double all = 0.0;
  for (const auto& rank : window) {
    tokens.push_back(0.0);
    for (const HandBatch& batch : rank) tokens.back() += static_cast<double>(batch.tokens);
    all += tokens.back();
  }
  const auto world = static_cast<double>(window.size());
  for (double& count : tokens)
    count = 1.0 / (formula == Formula::kGlobalMean ? all : world * count);
  return tokens;
}

/// Collects a sentence for each number that is not the formula's.
class Expectations {
 public:
  explicit Expectations(LossCheck& check) : check_(check) {}

  void number(const std::string& what, double found, double expected) {
    if (!near(found, expected)) {
      check_.unexpected.push_back(
          fmt::format("{} is {:.9g} and should be {:.9g}", what, found, expected));
    }
  }

  void window(const std::string& what, const ReducedWindow& found, const HandWindow& window) {
    const bool global = check_.expected == Formula::kGlobalMean;
    number(what + ": the objective", found.objective,
           global ? global_mean(window) : mean_of_means(window));
    const std::vector<double> weights = expected_weights(window, check_.expected);
    for (size_t rank = 0; rank < window.size(); ++rank) {
      const std::string place = fmt::format(" on rank {}", rank);
      const double weight = weights[rank];
      number(what + ": the weight of one token" + place, found.weights[rank], weight);
      number(what + ": the contribution" + place, found.contributions[rank],
             static_cast<double>(check_.divisor) * weight * found.sums[rank]);
    }
    number(what + ": the gradient at unsupervised positions", found.unsupervised_gradient, 0.0);
  }

 private:
  LossCheck& check_;
};

void judge(LossCheck& check) {
  Expectations expect(check);
  if (check.expected == Formula::kNotGlobalMean) {
    const HandWindow window = unequal_window();
    const std::vector<double> even = expected_weights(window, Formula::kGlobalMean);
    bool same = near(check.unequal.objective, global_mean(window));
    for (size_t rank = 0; rank < even.size(); ++rank)
      same = same && near(check.unequal.weights[rank], even[rank]);
    if (same)
      check.unexpected.emplace_back("12 and 36 tokens: it is the global mean, and should not be");
    return;
  }
  expect.window("12 and 36 tokens", check.unequal, unequal_window());
  expect.window("two microbatches", check.two_microbatches, two_microbatch_window());
  expect.number("divided again by the accumulation", check.divided_again,
                check.expected == Formula::kGlobalMean ? 1.25 : 1.0);
  expect.window("equal counts", check.equal_counts, equal_counts_window());
  expect.window("equal means", check.equal_means, equal_means_window());
  for (const double loss : check.one_parameter.losses)
    expect.number("one parameter: the loss of a rank", loss, 1.0);
  expect.number("one parameter: the gradient", check.one_parameter.gradient,
                check.expected == Formula::kGlobalMean ? 1.0 : 0.0);
}

}  // namespace

double global_mean(const HandWindow& window) {
  double sum = 0.0;
  double tokens = 0.0;
  for (const auto& rank : window) {
    for (const HandBatch& batch : rank) {
      sum += static_cast<double>(batch.tokens) * batch.loss;
      tokens += static_cast<double>(batch.tokens);
    }
  }
  return sum / tokens;
}

double mean_of_means(const HandWindow& window) {
  double total = 0.0;
  for (const auto& rank : window) total += global_mean({rank});
  return total / static_cast<double>(window.size());
}

ReducedWindow reduce_by_hand(const LossReducer& reducer, const HandWindow& window,
                             int64_t divisor) {
  ReducedWindow result;
  int64_t global = 0;
  for (const auto& rank : window) {
    result.tokens.push_back(0);
    for (const HandBatch& batch : rank)
      result.tokens.back() += count_of(reducer, batch_of(batch.tokens));
    global += result.tokens.back();
  }
  for (size_t rank = 0; rank < window.size(); ++rank) {
    const Aggregation ranks{.world = static_cast<int64_t>(window.size()), .divisor = divisor};
    const double scale = scale_of(reducer, {.global = global, .local = result.tokens[rank]}, ranks);
    double sum = 0.0;
    double contribution = 0.0;
    std::vector<double> weights;
    for (const HandBatch& hand : window[rank]) {
      const ReducedBatch reduced = reduce_batch(reducer, hand, scale);
      sum += static_cast<double>(hand.tokens) * hand.loss;
      contribution += reduced.value;
      weights.push_back(reduced.weight / static_cast<double>(divisor));
      // Written so that a NaN is kept.
      if (!(reduced.unsupervised_gradient <= result.unsupervised_gradient))
        result.unsupervised_gradient = reduced.unsupervised_gradient;
    }
    result.sums.push_back(sum);
    result.contributions.push_back(contribution);
    result.weights.push_back(common_value(at::tensor(weights, at::kDouble)));
    result.objective += contribution / static_cast<double>(divisor);
  }
  return result;
}

OneParameter one_parameter_example(const LossReducer& reducer, int64_t divisor) {
  struct Targets {
    int64_t count;
    double value;
  };
  const std::vector<Targets> ranks{{12, 1.0}, {36, -1.0}};
  std::vector<int64_t> tokens;
  int64_t global = 0;
  for (const Targets& targets : ranks) {
    tokens.push_back(count_of(reducer, batch_of(targets.count)));
    global += tokens.back();
  }
  OneParameter result;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const Batch batch = batch_of(ranks[rank].count);
    const at::Tensor parameter = at::zeros({}, at::kDouble).requires_grad_(true);
    const at::Tensor targets = at::full_like(batch.terms.front().weights, ranks[rank].value);
    const at::Tensor losses = (parameter - targets).square();
    const double scale = scale_of(reducer, {.global = global, .local = tokens[rank]},
                                  {.world = 2, .divisor = divisor});
    reducer.reduce(batch, {losses}, at::full({1}, scale, at::kDouble)).backward();
    result.losses.push_back(losses.narrow(1, 0, ranks[rank].count).mean().item<double>());
    result.gradient += parameter.grad().item<double>() / static_cast<double>(divisor);
  }
  return result;
}

const char* name_of(Formula formula) {
  switch (formula) {
    case Formula::kGlobalMean:
      return "global mean";
    case Formula::kMeanOfMeans:
      return "mean of means";
    case Formula::kNotGlobalMean:
      return "not the global mean";
  }
  return "";
}

HandWindow unequal_window() { return {{{12, 1.0}}, {{36, 3.0}}}; }
HandWindow two_microbatch_window() { return {{{4, 1.0}, {8, 1.0}}, {{12, 3.0}, {24, 3.0}}}; }
HandWindow equal_counts_window() { return {{{24, 1.0}}, {{24, 3.0}}}; }
HandWindow equal_means_window() { return {{{12, 2.0}}, {{36, 2.0}}}; }

LossCheck check_loss(const LossReducer& reducer, int64_t divisor, Formula expected) {
  LossCheck check;
  check.expected = expected;
  check.divisor = divisor;
  check.unequal = reduce_by_hand(reducer, unequal_window(), divisor);
  check.two_microbatches = reduce_by_hand(reducer, two_microbatch_window(), divisor);
  check.divided_again = check.two_microbatches.objective / 2.0;
  check.equal_counts = reduce_by_hand(reducer, equal_counts_window(), divisor);
  check.equal_means = reduce_by_hand(reducer, equal_means_window(), divisor);
  check.one_parameter = one_parameter_example(reducer, divisor);
  judge(check);
  return check;
}

}  // namespace tally::verify
