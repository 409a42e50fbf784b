#include "train/evaluation.h"

#include "run/losses.h"
#include "run/named_tensors.h"
#include "support/sequence_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <memory>

namespace tally::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Example i of the split "test" has i + 1 positions; position t loses i + t, and odd examples
/// weigh 2. A second term has one loss of 10 a sequence.
class CountingTask final : public Task {
 public:
  void prepare(const std::filesystem::path& /*folder*/) override {}
  std::vector<std::filesystem::path> data_files() const override { return {}; }
  ExampleTable examples(std::string_view split) const override {
    if (split == "test") return {{1, 2, 3, 4, 5}};
    return {};
  }
  std::vector<TermInfo> terms() const override {
    return {{.name = "token", .unit = "token"},
            {.name = "sequence", .unit = "sequence", .coefficient = 0.5}};
  }
  void initialise(int64_t /*seed*/) override {}
  std::vector<NamedTensor> parameters() override { return {{"weight", weight_}}; }
  std::vector<NamedTensor> buffers() override { return {{"steps", steps_}}; }
  void to(at::Device /*device*/) override {}
  void set_training(bool training) override { training_ = training; }

  Batch load(std::string_view /*split*/, const Microbatch& examples,
             const std::optional<BatchShape>& /*shape*/) const override {
    const auto rows = static_cast<int64_t>(examples.size());
    const at::Tensor weights = at::zeros({rows, 5});
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t id = examples[static_cast<size_t>(row)];
      weights[row].narrow(0, 0, id + 1).fill_(id % 2 == 0 ? 1.0 : 2.0);
    }
    return {
        .examples = examples,
        .inputs = {},
        .terms = {{.name = "token", .weights = weights, .documents = std::nullopt},
                  {.name = "sequence", .weights = at::ones({rows}), .documents = std::nullopt}}};
  }

  std::vector<at::Tensor> forward(const Batch& batch) override {
    EXPECT_FALSE(training_);
    EXPECT_FALSE(at::GradMode::is_enabled());
    largest_batch = std::max(largest_batch, batch.examples.size());
    const at::Tensor first = at::tensor(batch.examples, at::kFloat).unsqueeze(1);
    const at::Tensor losses = first + at::arange(5, at::kFloat).unsqueeze(0);
    const at::Tensor nan = at::full_like(losses, std::nan(""));
    return {losses.where(batch.terms.front().weights != 0, nan), at::full({losses.size(0)}, 10.0)};
  }

  Measures evaluate(const Batch& batch) override {
    return {{"rows",
             {static_cast<double>(batch.examples.size()) * 3.0,
              static_cast<int64_t>(batch.examples.size())}}};
  }

  size_t largest_batch = 0;

 private:
  at::Tensor weight_ = at::ones({2, 3}).requires_grad_(true);
  at::Tensor steps_ = at::zeros({1}, at::kLong);
  bool training_ = true;
};

/// Counts positions and ignores how much they weigh.
class CountingReducer final : public LossReducer {
 public:
  std::vector<double> scale(const std::vector<TermInfo>& /*terms*/,
                            const std::vector<TermCounts>& /*counts*/,
                            const Aggregation& /*aggregation*/) const override {
    return {};
  }
};

class EvaluationTest : public ::testing::Test {
 protected:
  EvaluationTest()
      : task_(std::make_unique<CountingTask>(), {"task", "counting", "test", "1"}),
        reducer_(std::make_unique<CountingReducer>(), {"loss_reducer", "counting", "test", "1"}) {}

  void load(const std::vector<NamedTensor>& model) {
    run::copy_by_name(model, run::model_of(task_), "the model in step-0001", "use its own recipe");
  }
  std::string load_error(const std::vector<NamedTensor>& model) {
    try {
      load(model);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no DataError";
  }
  at::Tensor weight() {
    return task_.call([](Task& task) { return task.parameters().front().tensor; });
  }

  plugin::Hooked<Task> task_;
  plugin::Hooked<LossReducer> reducer_;
};

TEST_F(EvaluationTest, AddsSumsAndCountsOverUnequalBatches) {
  // Sums of i + t over t <= i: 0, 3, 9, 18, 30; the odd ones weigh 2: 0 + 6 + 9 + 36 + 30.
  const Evaluation evaluation = evaluate(task_, reducer_, "test", 2, at::kCPU);
  EXPECT_EQ(evaluation.split, "test");
  EXPECT_EQ(evaluation.sequences, 5);
  ASSERT_EQ(evaluation.terms.size(), 2u);
  EXPECT_EQ(evaluation.terms[0].sum, 81.0);
  EXPECT_EQ(evaluation.terms[0].count, 15);
  EXPECT_EQ(evaluation.terms[0].mean(), 5.4);
  EXPECT_EQ(evaluation.terms[1].sum, 50.0);
  EXPECT_EQ(evaluation.terms[1].count, 5);
  EXPECT_EQ(evaluation.loss, 5.4 + 0.5 * 10.0);
  EXPECT_EQ(evaluation.measures.at("rows").sum, 15.0);
  EXPECT_EQ(evaluation.measures.at("rows").count, 5);
}

TEST_F(EvaluationTest, TheReducerSumsCountsAndNamesTheUnit) {
  // Means of the sequences: i + i / 2, whatever they weigh.
  const plugin::Hooked<LossReducer> by_sequence(std::make_unique<SequenceMean>(),
                                                {"loss_reducer", "sequence_mean", "test", "1"});
  for (const int64_t batch_size : {1, 2, 5}) {
    const Evaluation evaluation = evaluate(task_, by_sequence, "test", batch_size, at::kCPU);
    EXPECT_NEAR(evaluation.terms[0].sum, 15.0, 1e-6);
    EXPECT_EQ(evaluation.terms[0].count, 5);
    EXPECT_EQ(evaluation.terms[0].info.unit, "sequence");
    EXPECT_NEAR(evaluation.loss, 3.0 + 0.5 * 10.0, 1e-6);
  }
}

TEST_F(EvaluationTest, TheBatchSizeChangesNothing) {
  for (const int64_t batch_size : {1, 3, 5, 100}) {
    const Evaluation evaluation = evaluate(task_, reducer_, "test", batch_size, at::kCPU);
    EXPECT_EQ(evaluation.terms[0].sum, 81.0) << batch_size;
    EXPECT_EQ(evaluation.terms[0].count, 15) << batch_size;
  }
}

TEST_F(EvaluationTest, TakesBatchSizeExamplesAtATime) {
  evaluate(task_, reducer_, "test", 2, at::kCPU);
  EXPECT_EQ(task_.call([](Task& task) { return static_cast<CountingTask&>(task).largest_batch; }),
            2u);
}

TEST_F(EvaluationTest, ASplitWithoutExamplesIsAnError) {
  try {
    evaluate(task_, reducer_, "validation", 2, at::kCPU);
    FAIL() << "an empty split has a loss";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the split 'validation' of task \"counting\" (plugin test "
                                        "1) has no example"));
  }
}

TEST_F(EvaluationTest, NothingSupervisedIsAnError) {
  const std::vector<TermInfo> terms{{.name = "token", .unit = "token"}};
  try {
    add_up({"test", 2, 1}, terms, {{{1.0}, {0}, {}}, {{2.0}, {0}, {}}});
    FAIL() << "the mean over nothing is a loss";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'test'"), HasSubstr("'token'")));
  }
}

TEST_F(EvaluationTest, ABatchWithoutOneOfTheTermsIsThePluginsFault) {
  const Batch batch = task_.call([](Task& task) {
    return task.load("test", {0, 1}, std::nullopt);
  });
  EXPECT_EQ(run::count(reducer_, batch, 2), (std::vector<int64_t>{3, 2}));
  try {
    run::count(reducer_, batch, 3);
    FAIL() << "a term of three is missing";
  } catch (const PluginError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a batch of the task has 2 terms of 3"));
  }
}

TEST_F(EvaluationTest, AValueThatIsNoNumberIsNull) {
  Evaluation evaluation{
      "test", 1, std::nan(""), {{{.name = "token", .unit = "token"}, INFINITY, 1}}, {}};
  EXPECT_THAT(to_json(evaluation), AllOf(HasSubstr("\"loss\":null"), HasSubstr("\"sum\":null")));
}

TEST_F(EvaluationTest, ABatchSizeBeyondAllBoundsIsTheWholeSplit) {
  const SplitBatches batches = batches_of(task_, "test", std::numeric_limits<int64_t>::max());
  EXPECT_EQ(batches.size(), 1);
  EXPECT_EQ(batches.examples(0).size(), 5u);
}

TEST_F(EvaluationTest, LoadsByNameInAnyOrder) {
  load({{"steps", at::full({1}, 7, at::kLong)}, {"weight", at::full({2, 3}, 4.0)}});
  EXPECT_TRUE(weight().equal(at::full({2, 3}, 4.0)));
  EXPECT_EQ(task_.call([](Task& task) { return task.buffers().front().tensor.item<int64_t>(); }),
            7);
}

TEST_F(EvaluationTest, NamesWhatIsMissingUnexpectedAndOfAnotherShape) {
  EXPECT_THAT(
      load_error({{"weight", at::zeros({3, 2})}, {"bias", at::zeros({2})}}),
      AllOf(HasSubstr("the model in step-0001 does not fit"), HasSubstr("use its own recipe"),
            HasSubstr("'steps' is missing"), HasSubstr("'bias' is unexpected"),
            HasSubstr("'weight' is Float[3, 2] and should be Float[2, 3]")));
  EXPECT_TRUE(weight().equal(at::ones({2, 3}))) << "changed by a model that was refused";
}

TEST_F(EvaluationTest, AnotherDtypeIsAnotherModel) {
  EXPECT_THAT(load_error({{"weight", at::zeros({2, 3}, at::kDouble)},
                          {"steps", at::zeros({1}, at::kLong)}}),
              HasSubstr("'weight' is Double[2, 3] and should be Float[2, 3]"));
}

TEST_F(EvaluationTest, LongListsOfDifferencesAreCutShort) {
  std::vector<NamedTensor> model;
  for (int i = 0; i < 9; ++i) model.push_back({"extra." + std::to_string(i), at::zeros({1})});
  EXPECT_THAT(load_error(model),
              AllOf(HasSubstr("and 6 more"), HasSubstr("'extra.2'"), Not(HasSubstr("'extra.3'"))));
}

}  // namespace
}  // namespace tally::train
