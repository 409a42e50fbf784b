#include "verify/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <cmath>
#include <numeric>
#include <optional>

namespace tally::verify {
namespace {

/// Coefficients are read off single-precision gradients: closer than this is the same number,
/// farther apart another.
constexpr double kSame = 1e-3;

bool near(double a, double b) { return std::abs(a - b) <= kSame * std::max(std::abs(b), kSame); }

/// A window's gradient as one vector, in the order of the reference's parameters.
at::Tensor flat(const WindowGradient& reference, const WindowGradient& window) {
  std::vector<at::Tensor> parts;
  for (const NamedTensor& named : reference.total) {
    for (const NamedTensor& candidate : window.total) {
      if (candidate.name == named.name)
        parts.push_back(candidate.tensor.reshape({-1}).to(at::kDouble));
    }
  }
  return at::cat(parts);
}

struct Fit {
  std::vector<double> coefficients;
  double residual = 0.0;  ///< Norm of what the fit leaves, by the norm of the gradient.
};

/// Least squares of g over the columns.
std::optional<Fit> fit(const at::Tensor& gradient, const std::vector<at::Tensor>& columns) {
  const at::Tensor matrix = at::stack(columns, 1);
  const at::Tensor normal = matrix.t().matmul(matrix);
  const at::Tensor right = matrix.t().matmul(gradient);
  if (!normal.isfinite().all().item<bool>() || !right.isfinite().all().item<bool>())
    return std::nullopt;
  const at::Tensor solution = at::linalg_pinv(normal).matmul(right);
  Fit result;
  for (int64_t i = 0; i < solution.numel(); ++i) {
    // What rounding leaves of a share that is absent reads as the zero that it is.
    const double value = solution[i].item<double>();
    result.coefficients.push_back(std::abs(value) < kSame * kSame ? 0.0 : value);
  }
  const double size = gradient.norm().item<double>();
  result.residual =
      size > 0.0 ? (gradient - matrix.matmul(solution)).norm().item<double>() / size : 0.0;
  return result;
}

std::string name_of_factor(double factor, const GradientSet& run) {
  struct Named {
    double value;
    std::string text;
  };
  const auto world = static_cast<double>(run.world);
  const auto accumulation = static_cast<double>(run.accumulation);
  for (const Named& named :
       {Named{world, "W, the number of ranks: scaled for a mean over ranks that is not taken"},
        Named{1.0 / world, "1/W, the number of ranks: divided by it once too often"},
        Named{1.0 / accumulation,
              "1/accumulation: divided once more by the microbatches of a window"},
        Named{accumulation, "accumulation: the division by the microbatches is missing"},
        Named{world / accumulation, "W/accumulation"},
        Named{1.0 / (world * accumulation), "1/(W * accumulation)"}}) {
    if (near(factor, named.value)) return named.text;
  }
  return "no factor that is known here";
}

std::string name_local_counts(const std::vector<double>& coefficients,
                              const std::vector<int64_t>& counts) {
  if (counts.size() != coefficients.size()) return {};
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const auto world = static_cast<double>(counts.size());
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    if (counts[rank] == 0) continue;
    if (!near(coefficients[rank], total / (world * static_cast<double>(counts[rank])))) return {};
  }
  return fmt::format(
      "local instead of global count: every rank divides by its own (n = {}), not by N = {}; one "
      "token weighs "
      "{:.3g} times what it should, by rank",
      fmt::join(counts, ", "), total, fmt::join(coefficients, ", "));
}

}  // namespace

std::string diagnose(const GradientSet& reference, const GradientSet& other) {
  const WindowGradient& expected = reference.windows.front();
  const WindowGradient& found = other.windows.front();
  const at::Tensor gradient = flat(expected, found);
  if (!gradient.isfinite().all().item<bool>()) return "the gradient has NaN or infinite values";
  const std::optional<Fit> whole = fit(gradient, {flat(expected, expected)});
  if (whole && whole->residual < kSame) {
    const double factor = whole->coefficients.front();
    return fmt::format("{:.6g} times the reference: {}", factor, name_of_factor(factor, other));
  }
  if (!expected.by_shard.empty()) {
    // A rank without a shard has a share of zero.
    std::vector<at::Tensor> by_rank(static_cast<size_t>(other.world), at::zeros_like(gradient));
    for (size_t shard = 0; shard < expected.by_shard.size(); ++shard) {
      at::Tensor& sum = by_rank[shard % by_rank.size()];
      sum = sum + expected.by_shard[shard].to(at::kDouble);
    }
    const std::optional<Fit> ranks = fit(gradient, by_rank);
    if (ranks && ranks->residual < kSame) {
      const std::string named = name_local_counts(ranks->coefficients, found.counts_by_rank);
      if (!named.empty()) return named;
      return fmt::format(
          "the ranks' shares of the reference weigh {:.4g} times what they should, by rank",
          fmt::join(ranks->coefficients, ", "));
    }
  }
  return "no multiple of the reference, nor of the ranks' shares of it";
}

}  // namespace tally::verify
