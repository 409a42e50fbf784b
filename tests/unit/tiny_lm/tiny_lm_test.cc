#include "dataset.h"
#include "generator.h"
#include "support/temporary_folder.h"

#include <tally/plugin.h>
#include <tally/testing/fakes.h>

#include <gmock/gmock.h>

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <optional>
#include <random>

extern "C" const tally::PluginDescriptor tally_plugin_v1;

namespace {

using tally::content_of;
using tally::put;
using tally::TemporaryFolder;

using tally::testing::FakeConfig;
using tally::testing::FakeContext;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// A task and what it must not outlive.
struct Subject {
  explicit Subject(const FakeConfig& config = {}, int64_t seed = 1) : context(config, seed) {
    at::set_num_threads(1);
    task.reset(static_cast<tally::Task*>(tally_plugin_v1.hooks[0].create(context)));
  }

  /// The task over its own data, of which `text` is the file if it is given.
  Subject& prepare(const std::optional<std::string>& text = std::nullopt) {
    if (text) put(folder / "tiny_lm.jsonl", *text);
    task->prepare(folder.path());
    task->initialise(1);
    task->to(at::kCPU);
    return *this;
  }

  tally::Batch load(const tally::Microbatch& examples,
                    const std::optional<tally::BatchShape>& shape = std::nullopt) const {
    return task->load("train", examples, shape);
  }

  TemporaryFolder folder;
  FakeContext context;
  std::unique_ptr<tally::Task> task;
};

std::string line(const std::string& ids, const std::string& labels,
                 const std::string& split = "train") {
  return R"({"input_ids": )" + ids + R"(, "labels": )" + labels + R"(, "split": ")" + split +
         "\"}\n";
}

std::vector<int64_t> integers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kLong).contiguous();
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

const at::Tensor& ids(const tally::Batch& batch) { return batch.inputs.at(0).tensor; }
const at::Tensor& targets(const tally::Batch& batch) { return batch.inputs.at(1).tensor; }
const at::Tensor& weights(const tally::Batch& batch) { return batch.terms.at(0).weights; }

at::Tensor objective(const Subject& subject, const tally::Batch& batch) {
  const at::Tensor loss = subject.task->forward(batch).at(0);
  return loss.where(weights(batch).ne(0), 0).sum();
}

std::vector<at::Tensor> gradients(const Subject& subject, const tally::Batch& batch) {
  std::vector<at::Tensor> result;
  for (auto& [name, parameter] : subject.task->parameters()) parameter.mutable_grad().reset();
  objective(subject, batch).backward();
  for (auto& [name, parameter] : subject.task->parameters()) {
    result.push_back(parameter.grad().clone());
  }
  return result;
}

TEST(TinyLm, SaysWhatItIs) {
  Subject subject;
  EXPECT_THAT(subject.task->data_files(), ElementsAre("tiny_lm.jsonl"));
  ASSERT_EQ(subject.task->terms().size(), 1U);
  EXPECT_EQ(subject.task->terms()[0].unit, "token");
  EXPECT_EQ(subject.task->terms()[0].coefficient, 1.0);
  subject.prepare();
  EXPECT_EQ(subject.task->examples("train").lengths.size(), 1024U);
  EXPECT_EQ(subject.task->examples("validation").lengths.size(), 128U);
  EXPECT_EQ(subject.task->examples("test").lengths.size(), 256U);
  EXPECT_EQ(subject.task->parameters().size(), 30U);
  EXPECT_TRUE(subject.context.lines().empty());
}

TEST(TinyLm, PreparesTheSameBytesOnceAndWhateverTheRecipesSeed) {
  Subject first({}, 1);
  first.prepare();
  const auto file = first.folder / "tiny_lm.jsonl";
  const std::string bytes = content_of(file);
  const auto written = std::filesystem::last_write_time(file);
  first.prepare();
  EXPECT_EQ(content_of(file), bytes);
  EXPECT_EQ(std::filesystem::last_write_time(file), written);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(first.folder.path()), {}), 1);
  Subject second({{"labels", std::string("inputs")}, {"prompt_length", int64_t{3}}}, 2);
  EXPECT_EQ(content_of(second.prepare().folder / "tiny_lm.jsonl"), bytes);
  Subject third({{"data_seed", int64_t{1}}}, 1);
  EXPECT_NE(content_of(third.prepare().folder / "tiny_lm.jsonl"), bytes);
}

TEST(TinyLm, MakesItsFolderOrSaysWhyNot) {
  Subject subject;
  subject.task->prepare(subject.folder / "a/b");
  EXPECT_TRUE(std::filesystem::exists(subject.folder / "a/b/tiny_lm.jsonl"));
  put(subject.folder / "file", "");
  EXPECT_THAT([&] { subject.task->prepare(subject.folder / "file/data"); },
              ThrowsMessage<tally::DataError>(HasSubstr("Not a directory")));
}

TEST(TinyLm, PaddedBatchCountsItsTokens) {
  Subject subject;
  subject.prepare(line("[3, 0, 1]", "[0, 1, 2]") + line("[1, 2]", "[2, 3]"));
  const tally::Batch batch = subject.load({0, 1});
  EXPECT_EQ(ids(batch).sizes(), at::IntArrayRef({2, 3}));
  EXPECT_THAT(integers(ids(batch)), ElementsAre(3, 0, 1, 1, 2, 0));
  EXPECT_THAT(integers(targets(batch)), ElementsAre(0, 1, 2, 2, 3, 0));
  EXPECT_THAT(integers(weights(batch)), ElementsAre(1, 1, 1, 1, 1, 0));
  EXPECT_EQ(weights(batch).scalar_type(), at::kFloat);
  EXPECT_EQ(batch.examples, (tally::Microbatch{0, 1}));
  EXPECT_EQ(batch.terms[0].name, subject.task->terms()[0].name);
}

TEST(TinyLm, LabelsThatAreTheInputsAreShiftedAndCountOneLess) {
  Subject subject({{"labels", std::string("inputs")}});
  subject.prepare(line("[3, 0, 1]", "[3, 0, 1]") + line("[1, 2]", "[2, 3]") +
                  line("[1, 2, 3, 0]", "[-100, -100, 3, 0]"));
  const tally::Batch batch = subject.load({0, 1, 2});
  EXPECT_THAT(integers(weights(batch)), ElementsAre(1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0));
  EXPECT_THAT(integers(targets(batch)), ElementsAre(0, 1, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0));
}

TEST(TinyLm, PromptAndMaskedLabelsAreUnsupervised) {
  Subject subject({{"prompt_length", int64_t{2}}});
  subject.prepare(line("[3, 0, 1, 1]", "[0, 1, 2, -100]") + line("[1, 2]", "[2, 3]"));
  const tally::Batch batch = subject.load({0, 1});
  EXPECT_THAT(integers(weights(batch)), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_THAT(integers(targets(batch)), ElementsAre(0, 0, 2, 0, 0, 0, 0, 0));
}

/// Against a count taken another way: token by token, for random data and options.
TEST(TinyLm, CountsEveryMaskOfRandomData) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const auto prompt = static_cast<int64_t>(random() % 6);
    const bool shift = random() % 2 == 1;
    std::string text = line("[0,0,0,0,0,0,0,0]", "[0,0,0,0,0,0,0,0]");
    tally::Microbatch examples{0};
    int64_t expected = std::max<int64_t>(0, 8 - prompt - (shift ? 1 : 0));
    for (int64_t i = 1; i < 6; ++i) {
      const auto length = static_cast<int64_t>(1 + random() % 12);
      std::string tokens;
      std::string labels;
      for (int64_t t = 0; t < length; ++t) {
        const bool masked = random() % 3 == 0;
        const char* separator = t == 0 ? "" : ",";
        tokens += separator + std::to_string(random() % 4);
        labels += separator + (masked ? "-100" : std::to_string(random() % 4));
        // The label at t supervises position t, or the one before it after the shift.
        const int64_t position = shift ? t - 1 : t;
        if (!masked && position >= prompt && position >= 0) ++expected;
      }
      text += line("[" + tokens + "]", "[" + labels + "]");
      examples.push_back(i);
    }
    Subject subject(
        {{"prompt_length", prompt}, {"labels", std::string(shift ? "inputs" : "next")}});
    subject.prepare(text);
    EXPECT_EQ(weights(subject.load(examples)).sum().item<int64_t>(), expected) << "round " << round;
    EXPECT_EQ(weights(subject.load(examples, {{9, 30}})).sum().item<int64_t>(), expected);
  }
}

TEST(TinyLm, LoadsTheShapeThatIsAskedFor) {
  Subject subject;
  subject.prepare(line("[3, 0, 1]", "[0, 1, 2]"));
  const tally::Batch padded = subject.load({0}, {{3, 5}});
  EXPECT_EQ(ids(padded).sizes(), at::IntArrayRef({3, 5}));
  EXPECT_EQ(weights(padded).sum().item<int64_t>(), 3);
  const tally::Batch empty = subject.load({});
  EXPECT_EQ(ids(empty).sizes(), at::IntArrayRef({0, 1}));
  EXPECT_EQ(targets(empty).sizes(), at::IntArrayRef({0, 1}));
  EXPECT_EQ(weights(empty).sizes(), at::IntArrayRef({0, 1}));
  const tally::Batch unsupervised = subject.load({}, {{2, 4}});
  EXPECT_EQ(ids(unsupervised).sizes(), at::IntArrayRef({2, 4}));
  EXPECT_EQ(weights(unsupervised).sum().item<int64_t>(), 0);
  for (const tally::BatchShape shape : {tally::BatchShape{0, 3}, {1, 2}, {1, 129}}) {
    EXPECT_THAT([&] { subject.load({0}, shape); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("does not fit the shape")));
  }
  for (const int64_t id : {-1, 1}) {
    EXPECT_THAT([&] { subject.load({id}); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("train has 1")));
  }
}

TEST(TinyLm, LossIsTheCrossEntropyOfEachPosition) {
  Subject subject;
  subject.prepare();
  const tally::Batch batch = subject.load({0, 1, 2});
  const at::Tensor loss = subject.task->forward(batch).at(0);
  EXPECT_EQ(loss.sizes(), weights(batch).sizes());
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  EXPECT_TRUE(loss.isfinite().all().item<bool>());
  // Whatever the model says, exp(-loss) over the four possible targets is a distribution.
  at::Tensor total = at::zeros_like(loss);
  for (int64_t token = 0; token < 4; ++token) {
    tally::Batch other = batch;
    other.inputs[1].tensor = targets(batch).add(token).remainder(4);
    total = total.add(subject.task->forward(other).at(0).neg().exp());
  }
  EXPECT_LE(total.sub(1).abs().max().item<double>(), 1e-5);
}

TEST(TinyLm, MorePaddingLeavesLossAndGradientAlone) {
  Subject subject;
  subject.prepare();
  const tally::Microbatch examples{0, 1, 2, 3};
  const tally::Batch tight = subject.load(examples);
  const tally::Batch loose = subject.load(examples, {{6, 128}});
  ASSERT_LT(ids(tight).size(1), 128);
  EXPECT_TRUE(subject.task->forward(loose).at(0).isfinite().all().item<bool>());
  const double expected = objective(subject, tight).item<double>();
  EXPECT_NEAR(objective(subject, loose).item<double>(), expected, 1e-5 * expected);
  const auto first = gradients(subject, tight);
  const auto second = gradients(subject, loose);
  double largest = 0;
  for (const at::Tensor& g : first) largest = std::max(largest, g.abs().max().item<double>());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_LE(first[i].sub(second[i]).abs().max().item<double>(), 2e-6 * largest)
        << subject.task->parameters()[i].name;
  }
  // What the padding holds cannot matter either.
  tally::Batch other = loose;
  other.inputs[0].tensor = ids(loose).where(weights(loose).ne(0), 3);
  const auto third = gradients(subject, other);
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_LE(second[i].sub(third[i]).abs().max().item<double>(), 2e-6 * largest);
  }
}

TEST(TinyLm, EmptyBatchesGiveEveryParameterAnExactlyZeroGradient) {
  Subject subject;
  subject.prepare();
  EXPECT_EQ(subject.task->forward(subject.load({})).at(0).sizes(), at::IntArrayRef({0, 1}));
  for (const auto& batch : {subject.load({}), subject.load({}, {{2, 16}})}) {
    for (const at::Tensor& gradient : gradients(subject, batch)) {
      EXPECT_EQ(gradient.ne(0).sum().item<int64_t>(), 0);
    }
    EXPECT_EQ(subject.task->evaluate(batch).at("accuracy").count, 0);
  }
}

TEST(TinyLm, EvaluatesAccuracyAndTheEntropyOfItsOwnData) {
  Subject subject;
  subject.prepare();
  const tally::Batch batch = subject.task->load("test", {5, 6, 7}, std::nullopt);
  const tally::Measures measures = subject.task->evaluate(batch);
  ASSERT_EQ(measures.size(), 2U);
  const int64_t tokens = weights(batch).sum().item<int64_t>();

  double correct = 0;
  double entropy = 0;
  const tiny_lm::Rule rule(0, 0.1);
  const int64_t length = ids(batch).size(1);
  // The model's choice is the target with the least loss.
  std::vector<at::Tensor> losses;
  for (int64_t token = 0; token < 4; ++token) {
    tally::Batch other = batch;
    other.inputs[1].tensor = at::zeros_like(targets(batch)).add(token);
    losses.push_back(subject.task->forward(other).at(0).detach());
  }
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t t = 0; t < length; ++t) {
      const auto at = [&](const at::Tensor& tensor, int64_t position) {
        return tensor.select(0, row).select(0, position).item<double>();
      };
      if (at(weights(batch), t) == 0) continue;
      int64_t choice = 0;
      for (int64_t token = 1; token < 4; ++token) {
        const auto k = static_cast<size_t>(token);
        if (at(losses[k], t) < at(losses[static_cast<size_t>(choice)], t)) choice = token;
      }
      correct += static_cast<double>(choice) == at(targets(batch), t) ? 1 : 0;
      entropy += t == 0 ? std::log(4.0)
                        : rule.entropy(static_cast<int64_t>(at(ids(batch), t - 1)),
                                       static_cast<int64_t>(at(ids(batch), t)));
    }
  }
  EXPECT_EQ(measures.at("accuracy").count, tokens);
  EXPECT_EQ(measures.at("accuracy").sum, correct);
  EXPECT_EQ(measures.at("best_reachable_loss").count, tokens);
  EXPECT_NEAR(measures.at("best_reachable_loss").sum, entropy, 1e-9);
  for (const auto& [name, parameter] : subject.task->parameters()) {
    EXPECT_FALSE(parameter.grad().defined());
  }
}

TEST(TinyLm, KnowsNoEntropyOfOtherData) {
  Subject subject;
  subject.prepare(line("[3, 0, 1]", "[0, 1, 2]"));
  EXPECT_EQ(subject.task->evaluate(subject.load({0})).count("best_reachable_loss"), 0U);
  EXPECT_THAT(
      subject.context.lines(),
      ElementsAre(AllOf(HasSubstr("used as it is"), HasSubstr("move it away to have it made"))));
  // Data of another seed is other data, too.
  Subject made({{"data_seed", int64_t{5}}});
  made.prepare();
  Subject reader;
  reader.task->prepare(made.folder.path());
  reader.task->initialise(1);
  EXPECT_EQ(reader.task->evaluate(reader.load({0})).count("best_reachable_loss"), 0U);
}

TEST(TinyLm, RefusesDataThatCannotTrain) {
  const auto prepare = [](const std::string& text, int64_t prompt = 0) {
    Subject({{"prompt_length", prompt}}).prepare(text);
  };
  EXPECT_THAT(
      [&] { prepare(line("[0, 1]", "[-100, -100]") + line("[1]", "[-100]")); },
      ThrowsMessage<tally::DataError>(AllOf(HasSubstr("tiny_lm.jsonl"), HasSubstr("no position"))));
  EXPECT_THAT([&] { prepare(line("[0, 1]", "[1, 1]"), 2); },
              ThrowsMessage<tally::DataError>(HasSubstr("prompt_length = 2")));
  EXPECT_NO_THROW(prepare(line("[0, 1]", "[1, 1]") + line("[1]", "[-100]"), 1));
  EXPECT_THAT([&] { prepare(line("[0, 1]", "[1, 1]", "test")); },
              ThrowsMessage<tally::DataError>(HasSubstr(R"(no example with the split "train")")));
  EXPECT_THAT([&] { prepare(line("[0, 1]", "[1, 1]") + line("[0, 4]", "[1, 1]")); },
              ThrowsMessage<tally::DataError>(HasSubstr("tiny_lm.jsonl:2: input_ids[1] is 4")));
  EXPECT_THAT(
      [&] { Subject().prepare(line("[0, 1]", "[1, 1]")).task->examples("validation"); },
      ThrowsMessage<tally::DataError>(HasSubstr(R"(no examples of the split "validation")")));
}

TEST(TinyLm, RefusesOptionsThatCannotBe) {
  const std::pair<FakeConfig, const char*> cases[] = {
      {{{"dropout", 1.0}}, "dropout"},
      {{{"dropout", -0.1}}, "dropout"},
      {{{"dropout", std::nan("")}}, "dropout"},
      {{{"noise", 1.5}}, "noise"},
      {{{"noise", -0.1}}, "noise"},
      {{{"labels", std::string("previous")}}, "labels"},
      {{{"prompt_length", int64_t{-1}}}, "prompt_length"},
      {{{"prompt_length", int64_t{129}}}, "prompt_length"}};
  for (const auto& [config, key] : cases) {
    EXPECT_THAT([&] { Subject subject(config); },
                ThrowsMessage<tally::ConfigError>(HasSubstr(key)));
  }
  const Subject all({{"dropout", 0.5},
                     {"noise", 0.0},
                     {"labels", std::string("next")},
                     {"prompt_length", int64_t{128}},
                     {"data_seed", int64_t{-1}}});
  EXPECT_TRUE(all.context.config().unread().empty());
}

TEST(TinyLm, LearnsTheRule) {
  Subject subject;
  subject.prepare();
  subject.task->set_training(true);
  std::mt19937 random(1);
  double loss = 0;
  for (int update = 0; update < 25; ++update) {
    tally::Microbatch examples;
    for (int i = 0; i < 16; ++i) examples.push_back(static_cast<int64_t>(random() % 1024));
    const tally::Batch batch = subject.load(examples);
    const double tokens = weights(batch).sum().item<double>();
    loss = objective(subject, batch).item<double>() / tokens;
    const auto gradient = gradients(subject, batch);
    const auto parameters = subject.task->parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].tensor.detach().sub_(gradient[i].mul(0.05 / tokens));
    }
  }
  EXPECT_LT(loss, 1.1);  // guessing costs log 4 = 1.386
  subject.task->set_training(false);
  const auto accuracy =
      subject.task->evaluate(subject.task->load("test", {0, 1, 2, 3, 4, 5, 6, 7}, {}))
          .at("accuracy");
  EXPECT_GT(accuracy.sum / static_cast<double>(accuracy.count), 0.5);
}

}  // namespace
