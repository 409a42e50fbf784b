#include "dataset.h"
#include "generator.h"
#include "model.h"

#include <tally/config.h>
#include <tally/error.h>
#include <tally/plugin.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tiny_lm {
namespace {

constexpr std::string_view kFile = "tiny_lm.jsonl";

const at::Tensor& input(const tally::Batch& batch, std::string_view name) {
  for (const tally::NamedTensor& input : batch.inputs) {
    if (input.name == name) return input.tensor;
  }
  throw std::invalid_argument("the batch has no input " + std::string(name));
}

/// A language model of four tokens, small enough for a CPU, on data whose entropy is known.
///
/// Data: tiny_lm.jsonl, made from `data_seed` and `noise` when it is absent, and otherwise taken as
/// it is, so that it may be replaced by anybody's own. It does not depend on the recipe's seed.
/// Position t of an example is supervised if it has a target, t >= prompt_length and it is no
/// padding. Its target is, with
///
///     labels = "next"     labels[t], unless that is -100;
///     labels = "inputs"   input_ids[t + 1], unless t is the last position or labels[t + 1] is
///     -100.
class TinyLm final : public tally::Task {
 public:
  explicit TinyLm(tally::Context& context)
      : context_(context),
        dropout_(context.config().number("dropout", 0.0)),
        prompt_length_(context.config().integer_in("prompt_length", 0, 0, kLongest)),
        shift_(context.config().text("labels", "next") == "inputs"),
        rule_(static_cast<uint64_t>(context.config().integer("data_seed", 0)),
              context.config().number("noise", 0.1)),
        model_(dropout_) {
    const tally::Config& config = context.config();
    if (!(dropout_ >= 0 && dropout_ < 1)) {
      config.reject("dropout", "must be at least 0 and below 1");
    }
    const double noise = config.number("noise", 0.1);
    if (!(noise >= 0 && noise <= 1)) config.reject("noise", "must lie between 0 and 1");
    if (!shift_ && config.text("labels", "next") != "next") {
      config.reject("labels", R"(must be "next" or "inputs")");
    }
  }

  void prepare(const std::filesystem::path& folder) override {
    const std::filesystem::path file = folder / kFile;
    const Dataset generated = rule_.dataset();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      throw tally::DataError("creating " + folder.string() + " failed: " + error.message());
    }
    const bool there = std::filesystem::exists(file, error);
    if (error) {
      throw tally::DataError("looking for " + file.string() + " failed: " + error.message());
    }
    if (!there) write_dataset(file, generated);
    dataset_ = read_dataset(file);
    generated_ = dataset_ == generated;
    if (!generated_) {
      context_.log(tally::LogLevel::kInfo,
                   file.string() +
                       " is not what data_seed and noise give; it is used as it is, and " +
                       "its entropy is unknown (move it away to have it made)");
    }
    require_supervision(file);
  }

  std::vector<std::filesystem::path> data_files() const override { return {kFile}; }

  tally::ExampleTable examples(std::string_view split) const override {
    const Split& examples = find(split);
    tally::ExampleTable table;
    for (size_t i = 0; i < examples.size(); ++i) {
      table.lengths.push_back(static_cast<int64_t>(examples[i].ids.size()));
    }
    return table;
  }

  std::vector<tally::TermInfo> terms() const override {
    return {{.name = "loss", .unit = "token"}};
  }

  void initialise(int64_t seed) override { model_.initialise(seed); }
  std::vector<tally::NamedTensor> parameters() override { return model_.parameters(); }
  void to(at::Device device) override { model_.to(device); }
  void set_training(bool training) override { model_.set_training(training); }

  tally::Batch load(std::string_view split, const tally::Microbatch& examples,
                    const std::optional<tally::BatchShape>& shape) const override;

  std::vector<at::Tensor> forward(const tally::Batch& batch) override {
    const at::Tensor& targets = input(batch, "targets");
    const at::Tensor logits = model_.logits(input(batch, "input_ids"));
    return {at::cross_entropy_loss(logits.flatten(0, 1), targets.flatten(), {}, at::Reduction::None)
                .view(targets.sizes())};
  }

  tally::Measures evaluate(const tally::Batch& batch) override {
    const c10::NoGradGuard no_gradients;
    const at::Tensor& ids = input(batch, "input_ids");
    const at::Tensor supervised = batch.terms.at(0).weights.ne(0);
    const int64_t count = supervised.sum().item<int64_t>();
    const at::Tensor right = model_.logits(ids).argmax(-1).eq(input(batch, "targets"));
    tally::Measures measures;
    measures["accuracy"] = {right.logical_and(supervised).sum().item<double>(), count};
    if (generated_) {
      measures["best_reachable_loss"] = {entropies(ids).where(supervised, 0).sum().item<double>(),
                                         count};
    }
    return measures;
  }

 private:
  const Split& find(std::string_view split) const {
    const auto found = dataset_.find(split);
    if (found == dataset_.end()) {
      throw tally::DataError(std::string(kFile) + " has no examples of the split \"" +
                             std::string(split) + "\"");
    }
    return found->second;
  }

  /// Writes the target of each position, and 1 where there is one. The rest is left alone.
  void supervise(const Split::Example& example, int64_t* targets, float* weights) const {
    const auto length = static_cast<int64_t>(example.ids.size());
    const int64_t ahead = shift_ ? 1 : 0;
    for (int64_t t = prompt_length_; t + ahead < length; ++t) {
      const auto at = static_cast<size_t>(t + ahead);
      if (example.labels[at] == kUnsupervised) continue;
      targets[t] = shift_ ? example.ids[at] : example.labels[at];
      weights[t] = 1;
    }
  }

  void require_supervision(const std::filesystem::path& file) const;
  at::Tensor entropies(const at::Tensor& ids) const;

  tally::Context& context_;
  const double dropout_;
  const int64_t prompt_length_;
  const bool shift_;
  const Rule rule_;
  Model model_;
  Dataset dataset_;
  bool generated_ = false;  ///< The data follows rule_.
};

tally::Batch TinyLm::load(std::string_view split, const tally::Microbatch& examples,
                          const std::optional<tally::BatchShape>& shape) const {
  const Split& all = find(split);
  int64_t rows = static_cast<int64_t>(examples.size());
  int64_t length = 1;
  for (const tally::ExampleId id : examples) {
    if (id < 0 || id >= static_cast<int64_t>(all.size())) {
      throw std::invalid_argument("example " + std::to_string(id) + " was asked for, but " +
                                  std::string(split) + " has " + std::to_string(all.size()));
    }
    length = std::max(length, static_cast<int64_t>(all[static_cast<size_t>(id)].ids.size()));
  }
  if (shape) {
    if (shape->examples < rows || shape->length < length || shape->length > kLongest) {
      throw std::invalid_argument(
          "a batch of " + std::to_string(rows) + " examples up to " + std::to_string(length) +
          " tokens long does not fit the shape " + std::to_string(shape->examples) + " x " +
          std::to_string(shape->length) + ", or that exceeds " + std::to_string(kLongest));
    }
    rows = shape->examples;
    length = shape->length;
  }

  // Padding is token 0 with target 0: harmless to compute, and its loss is never selected.
  const at::Tensor ids = at::zeros({rows, length}, at::kLong);
  const at::Tensor targets = at::zeros({rows, length}, at::kLong);
  const at::Tensor weights = at::zeros({rows, length}, at::kFloat);
  for (size_t row = 0; row < examples.size(); ++row) {
    const Split::Example example = all[static_cast<size_t>(examples[row])];
    const int64_t start = static_cast<int64_t>(row) * length;
    std::copy(example.ids.begin(), example.ids.end(), ids.mutable_data_ptr<int64_t>() + start);
    supervise(example, targets.mutable_data_ptr<int64_t>() + start,
              weights.mutable_data_ptr<float>() + start);
  }
  return {.examples = examples,
          .inputs = {{"input_ids", ids}, {"targets", targets}},
          .terms = {{.name = "loss", .weights = weights, .documents = std::nullopt}}};
}

/// Training on nothing would only show as a window without a denominator, much later.
void TinyLm::require_supervision(const std::filesystem::path& file) const {
  const auto train = dataset_.find("train");
  if (train == dataset_.end()) {
    throw tally::DataError(file.string() + R"( has no example with the split "train")");
  }
  std::vector<int64_t> targets(kLongest);
  std::vector<float> weights(kLongest);
  for (size_t i = 0; i < train->second.size(); ++i) {
    supervise(train->second[i], targets.data(), weights.data());
    if (std::find(weights.begin(), weights.end(), 1.0F) != weights.end()) return;
  }
  throw tally::DataError(
      file.string() + ": no position of the split \"train\" is supervised: all " +
      "labels are -100, or task.prompt_length = " + std::to_string(prompt_length_) +
      " covers the rest");
}

/// fp64 [B, L]: entropy of the target of each position, given the tokens up to there.
at::Tensor TinyLm::entropies(const at::Tensor& ids) const {
  at::Tensor table = at::empty({kVocabulary * kVocabulary}, at::kDouble);
  for (int64_t pair = 0; pair < table.numel(); ++pair) {
    table.mutable_data_ptr<double>()[pair] = rule_.entropy(pair / kVocabulary, pair % kVocabulary);
  }
  table = table.to(ids.device());
  const int64_t length = ids.size(1);
  const at::Tensor pairs =
      ids.narrow(1, 0, length - 1).mul(kVocabulary).add(ids.narrow(1, 1, length - 1));
  const at::Tensor first = at::full({ids.size(0), 1}, Rule::first_entropy(), table.options());
  return at::cat({first, table.take(pairs)}, 1);
}

}  // namespace
}  // namespace tiny_lm

TALLY_PLUGIN("tiny_lm", "0.1.0", tally::hook<tiny_lm::TinyLm>("tiny_lm"))
