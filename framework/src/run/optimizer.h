#pragma once

#include "distributed/flat_parameters.h"
#include "recipe/section.h"

#include <memory>
#include <vector>

namespace tally::run {

/// Updates the flat parameters from the flat gradients, one fused kernel over all of them.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// `found_inf`: float scalar on the parameters' device; 1 leaves parameters and state exactly as
  /// they are, so the step never waits for the device. [trainer]
  virtual void step(const at::Tensor& found_inf) = 0;

  /// What a checkpoint keeps: tensors of the optimizer, which load_state fills in place.
  virtual std::vector<NamedTensor> state() = 0;
};

/// From the section `[optimizer]`: name = "sgd" (learning_rate, momentum, weight_decay) or "adamw"
/// (learning_rate, beta1, beta2, epsilon, weight_decay). Read without any
/// tensor, so that a recipe can be checked before there is a model.
struct OptimizerOptions {
  std::string name;
  double learning_rate = 0.0;
  double momentum = 0.0;
  double weight_decay = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};
OptimizerOptions read_optimizer(const recipe::Section& section);

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          distributed::FlatParameters& parameters);

}  // namespace tally::run
