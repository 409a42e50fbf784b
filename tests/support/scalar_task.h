#pragma once

#include <tally/sampler.h>
#include <tally/state_provider.h>
#include <tally/task.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace tally::train {

/// One position of an example. Its loss is  loss + gradient . theta + curvature / 2 * theta .
/// theta, so its gradient at theta = 0 is `gradient`.
struct Position {
  std::vector<double> gradient;
  double loss = 0.0;
  double weight = 1.0;  ///< 0: not supervised.
  double curvature = 0.0;
  std::string term = "main";
};
using Example = std::vector<Position>;

/// All that a scripted run computes on.
struct Script {
  std::vector<TermInfo> terms{{.name = "main", .unit = "token"}};
  int64_t parameters = 1;
  at::ScalarType dtype = at::kDouble;
  double theta = 0.0;  ///< Where every parameter starts.
  std::vector<Example> examples;
  std::vector<WindowPlan> plans;
  /// Called by forward, on the trainer's thread.
  std::function<void(const Batch&)> on_forward = [](const Batch&) {};
};

/// A model of a few scalar parameters whose loss and gradient at each position are the script's.
/// Padding is unsupervised and its loss NaN: nothing of it may reach value or gradient.
class ScalarTask : public Task {
 public:
  explicit ScalarTask(Script script) : script_(std::move(script)) {}

  void prepare(const std::filesystem::path& /*folder*/) override {}
  std::vector<std::filesystem::path> data_files() const override { return {}; }
  ExampleTable examples(std::string_view /*split*/) const override {
    ExampleTable table;
    for (const Example& example : script_.examples)
      table.lengths.push_back(static_cast<int64_t>(example.size()));
    return table;
  }
  std::vector<TermInfo> terms() const override { return script_.terms; }

  void initialise(int64_t /*seed*/) override {
    theta_.clear();
    for (int64_t p = 0; p < script_.parameters; ++p)
      theta_.push_back(torch::full({}, script_.theta, script_.dtype).set_requires_grad(true));
  }
  std::vector<NamedTensor> parameters() override {
    std::vector<NamedTensor> named;
    for (size_t p = 0; p < theta_.size(); ++p)
      named.push_back({"theta." + std::to_string(p), theta_[p]});
    return named;
  }
  void to(at::Device /*device*/) override {}
  void set_training(bool /*training*/) override {}

  Batch load(std::string_view /*split*/, const Microbatch& ids,
             const std::optional<BatchShape>& /*shape*/) const override {
    Batch batch;
    batch.examples = ids;
    size_t longest = 0;
    for (const ExampleId id : ids) longest = std::max(longest, example(id).size());
    const auto rows = static_cast<int64_t>(ids.size());
    const auto length = static_cast<int64_t>(longest);
    at::Tensor losses =
        torch::full({rows, length}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
    at::Tensor gradients = torch::zeros({rows, length, script_.parameters}, at::kDouble);
    at::Tensor curvatures = torch::zeros({rows, length}, at::kDouble);
    for (const TermInfo& term : script_.terms)
      batch.terms.push_back({term.name, torch::zeros({rows, length}, at::kDouble), std::nullopt});
    for (int64_t row = 0; row < rows; ++row) {
      const Example& positions = example(ids[static_cast<size_t>(row)]);
      for (int64_t i = 0; i < static_cast<int64_t>(positions.size()); ++i) {
        const Position& position = positions[static_cast<size_t>(i)];
        losses[row][i] = position.loss;
        curvatures[row][i] = position.curvature;
        for (size_t p = 0; p < position.gradient.size(); ++p)
          gradients[row][i][static_cast<int64_t>(p)] = position.gradient[p];
        for (Term& term : batch.terms)
          if (term.name == position.term) term.weights[row][i] = position.weight;
      }
    }
    batch.inputs = {{"losses", losses.to(script_.dtype)},
                    {"gradients", gradients.to(script_.dtype)},
                    {"curvatures", curvatures.to(script_.dtype)}};
    for (Term& term : batch.terms) term.weights = term.weights.to(script_.dtype);
    return batch;
  }

  std::vector<at::Tensor> forward(const Batch& batch) override {
    script_.on_forward(batch);
    const at::Tensor theta = torch::stack(theta_);
    const at::Tensor losses = batch.inputs[0].tensor + batch.inputs[1].tensor.matmul(theta) +
                              batch.inputs[2].tensor * theta.dot(theta) / 2;
    return std::vector<at::Tensor>(batch.terms.size(), losses);
  }
  Measures evaluate(const Batch& /*batch*/) override { return {}; }

 private:
  const Example& example(ExampleId id) const { return script_.examples[static_cast<size_t>(id)]; }

  Script script_;
  std::vector<at::Tensor> theta_;
};

/// Gives the script's plans, one after another.
class ScriptedSampler final : public Sampler {
 public:
  explicit ScriptedSampler(std::vector<WindowPlan> plans) : plans_(std::move(plans)) {}

  void prepare(const ExampleTable& /*examples*/) override {}
  std::optional<WindowPlan> plan(int64_t /*window*/) override {
    if (next_ >= plans_.size()) return std::nullopt;
    return plans_[next_++];
  }
  void save_state(StateWriter& writer) const override {
    writer.integer("next", static_cast<int64_t>(next_));
  }
  void load_state(const StateReader& reader) override {
    next_ = static_cast<size_t>(reader.integer("next"));
  }

 private:
  std::vector<WindowPlan> plans_;
  size_t next_ = 0;
};

}  // namespace tally::train
