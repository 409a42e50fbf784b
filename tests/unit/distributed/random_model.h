#pragma once

#include "distributed/flat_parameters.h"

#include <torch/torch.h>

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace tally::distributed {

/// Parameters of random shapes, 0-dimensional ones among them: equal for equal seeds.
inline std::vector<NamedTensor> random_parameters(uint64_t seed, int64_t count = 7) {
  std::mt19937_64 random(seed);
  at::Generator generator = at::detail::createCPUGenerator(seed);
  std::vector<NamedTensor> parameters;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> shape(random() % 3);
    for (int64_t& size : shape) size = static_cast<int64_t>(1 + random() % 9);
    parameters.push_back({fmt::format("p{}", i),
                          torch::randn(shape, generator, at::kFloat).set_requires_grad(true)});
  }
  return parameters;
}

/// The loss of one microbatch of one rank: smooth, unlike any other microbatch's, and through every
/// parameter but `unused`.
inline at::Tensor random_loss(const std::vector<NamedTensor>& parameters, int64_t rank,
                              int64_t window, int64_t microbatch, int64_t unused = -1) {
  at::Generator generator = at::detail::createCPUGenerator(
      static_cast<uint64_t>(1000000 * rank + 1000 * window + microbatch));
  at::Tensor loss = torch::zeros({});
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i].tensor;
    const at::Tensor factor = torch::randn(parameter.sizes(), generator, at::kFloat);
    if (static_cast<int64_t>(i) != unused) loss = loss + (parameter * factor).sin().sum();
  }
  return loss;
}

/// What a rank without data runs: reaches every parameter, with a gradient of exactly zero.
inline at::Tensor loss_of_nothing(const std::vector<NamedTensor>& parameters) {
  at::Tensor loss = torch::zeros({});
  for (const NamedTensor& named : parameters)
    loss = loss + named.tensor.reshape({-1}).narrow(0, 0, 0).sum();
  return loss;
}

/// The gradients one after another, as the parameters are listed.
inline at::Tensor gradients_of(const std::vector<NamedTensor>& parameters) {
  std::vector<at::Tensor> parts;
  for (const NamedTensor& named : parameters) parts.push_back(named.tensor.grad().reshape({-1}));
  return torch::cat(parts).clone();
}

/// Largest difference relative to the largest value of `expected`.
inline double relative_difference(const at::Tensor& actual, const at::Tensor& expected) {
  const double largest = expected.abs().max().item<double>();
  return (actual - expected).abs().max().item<double>() / std::max(largest, 1e-30);
}

}  // namespace tally::distributed
