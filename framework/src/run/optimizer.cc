#include "run/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <torch/torch.h>

namespace tally::run {
namespace {

using distributed::FlatParameters;

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerOptions& options, FlatParameters& parameters)
      : options_(options), parameters_(parameters) {
    if (options_.momentum != 0.0) momentum_ = at::zeros_like(parameters.values());
  }

  void step(const at::Tensor& found_inf) override {
    std::vector<at::Tensor> buffers;
    if (momentum_.defined()) buffers.push_back(momentum_);
    // Buffers start at zero, so the first step needs no case of its own: 0 * momentum + g = g.
    at::_fused_sgd_({parameters_.values()}, {parameters_.gradients()}, buffers,
                    options_.weight_decay, options_.momentum, options_.learning_rate,
                    /*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false,
                    /*is_first_step=*/false, /*grad_scale=*/std::nullopt, found_inf);
  }

  std::vector<NamedTensor> state() override {
    if (!momentum_.defined()) return {};
    return {{"momentum", momentum_}};
  }

 private:
  OptimizerOptions options_;
  FlatParameters& parameters_;
  at::Tensor momentum_;
};

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimizerOptions& options, FlatParameters& parameters)
      : options_(options),
        parameters_(parameters),
        average_(at::zeros_like(parameters.values())),
        square_average_(at::zeros_like(parameters.values())),
        steps_(at::zeros({}, parameters.values().options().dtype(at::kFloat))) {}

  void step(const at::Tensor& found_inf) override {
    at::_foreach_add_({steps_}, 1);
    at::_fused_adamw_({parameters_.values()}, {parameters_.gradients()}, {average_},
                      {square_average_}, {}, {steps_}, options_.learning_rate, options_.beta1,
                      options_.beta2, options_.weight_decay, options_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/std::nullopt,
                      found_inf);
    steps_.sub_(found_inf);  // a skipped step does not count
  }

  std::vector<NamedTensor> state() override {
    return {{"exp_avg", average_}, {"exp_avg_sq", square_average_}, {"step", steps_}};
  }

 private:
  OptimizerOptions options_;
  FlatParameters& parameters_;
  at::Tensor average_;
  at::Tensor square_average_;
  at::Tensor steps_;
};

double non_negative(const recipe::Section& section, std::string_view key,
                    std::optional<double> fallback) {
  const double value = section.number(key, fallback);
  if (!(value >= 0.0)) section.reject(key, "must be at least 0");
  return value;
}

double below_one(const recipe::Section& section, std::string_view key, double fallback) {
  const double value = non_negative(section, key, fallback);
  if (!(value < 1.0)) section.reject(key, "must be less than 1");
  return value;
}

}  // namespace

OptimizerOptions read_optimizer(const recipe::Section& section) {
  OptimizerOptions options;
  options.name = section.choice("name", "sgd", {"sgd", "adamw"});
  options.learning_rate = non_negative(section, "learning_rate", std::nullopt);
  options.weight_decay = non_negative(section, "weight_decay", 0.0);
  if (!(options.learning_rate * options.weight_decay <= 1.0)) {
    section.reject("weight_decay",
                   fmt::format("times learning_rate = {} must be at most 1, or an update takes "
                               "more than the whole weight away",
                               options.learning_rate));
  }
  options.momentum = below_one(section, "momentum", 0.0);
  if (options.name == "adamw") {
    if (options.momentum != 0.0) section.reject("momentum", "must be 0 for adamw, which has beta1");
    options.beta1 = below_one(section, "beta1", options.beta1);
    options.beta2 = below_one(section, "beta2", options.beta2);
    options.epsilon = non_negative(section, "epsilon", options.epsilon);
  }
  return options;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          FlatParameters& parameters) {
  if (options.name == "adamw") return std::make_unique<AdamW>(options, parameters);
  return std::make_unique<Sgd>(options, parameters);
}

}  // namespace tally::run
