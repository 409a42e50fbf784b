#include "verify/parity.h"

#include "verify/diagnosis.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

namespace tally::verify {
namespace {

void require_comparable(const GradientSet& reference, const GradientSet& other) {
  const auto reject = [&](const std::string& what, const std::string& ours,
                          const std::string& theirs) {
    throw ConfigError(
        fmt::format("the gradients of '{}' and '{}' cannot be compared: {} is {} and {}; give both "
                    "the same seed, data and sampler",
                    reference.recipe, other.recipe, what, ours, theirs));
  };
  if (reference.data != other.data) reject("the data", reference.data.hex(), other.data.hex());
  if (reference.windows.size() != other.windows.size()) {
    reject("the number of windows", std::to_string(reference.windows.size()),
           std::to_string(other.windows.size()));
  }
  if (reference.chain != other.chain)
    reject("the chain of drawn windows", reference.chain.hex(), other.chain.hex());
}

/// The gradients of one window, paired by name, as float64.
std::vector<std::pair<at::Tensor, at::Tensor>> paired(const WindowGradient& reference,
                                                      const WindowGradient& other) {
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  if (reference.total.size() != other.total.size())
    throw ConfigError("the recipes train different numbers of parameters");
  for (const NamedTensor& expected : reference.total) {
    const auto found =
        std::find_if(other.total.begin(), other.total.end(),
                     [&](const NamedTensor& candidate) { return candidate.name == expected.name; });
    if (found == other.total.end() || found->tensor.sizes() != expected.tensor.sizes()) {
      throw ConfigError(
          fmt::format("the recipes train different models: parameter '{}' is not the same in both",
                      expected.name));
    }
    pairs.emplace_back(expected.tensor.to(at::kDouble), found->tensor.to(at::kDouble));
  }
  return pairs;
}

void accumulate(const at::Tensor& expected, const at::Tensor& found, const Tolerance& tolerance,
                Parity& parity) {
  const at::Tensor size = expected.abs();
  const at::Tensor error = (found - expected).abs();
  parity.values += expected.numel();
  if (expected.numel() == 0) return;
  // max() is NaN when any value is: a NaN is never within tolerance.
  const auto larger = [](double a, double b) {
    return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
  };
  parity.max_abs_error = larger(parity.max_abs_error, error.max().item<double>());
  parity.max_rel_error =
      larger(parity.max_rel_error,
             (error / size.clamp_min(tolerance.relative_floor)).max().item<double>());
  parity.max_reference = larger(parity.max_reference, size.max().item<double>());
  const at::Tensor within = error <= tolerance.absolute + tolerance.relative * size;
  parity.out_of_tolerance += within.logical_not().sum().item<int64_t>();
}

}  // namespace

Parity compare_gradients(const GradientSet& reference, const GradientSet& other,
                         const Tolerance& tolerance) {
  require_comparable(reference, other);
  Parity parity;
  parity.recipe = other.recipe;
  for (size_t i = 0; i < reference.windows.size(); ++i) {
    for (const auto& [expected, found] : paired(reference.windows[i], other.windows[i])) {
      accumulate(expected, found, tolerance, parity);
    }
  }
  parity.pass = parity.values > 0 && parity.out_of_tolerance == 0;
  if (!parity.pass) parity.diagnosis = diagnose(reference, other);
  return parity;
}

}  // namespace tally::verify
