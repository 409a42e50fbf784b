#include "verify/exercise.h"
#include "cli/recipe_options.h"
#include "report/numbers.h"
#include "report/table.h"
#include "verbs/prediction.h"
#include "verbs/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace tally::verbs {
namespace {

using nlohmann::json;
using report::Align;

constexpr int64_t kBefore = 12;
constexpr int64_t kAfter = 36;

struct ExerciseOptions {
  cli::RecipeOptions recipe;
  std::string must_pass;
  std::string must_fail;
  bool predict = false;
};

/// A recipe's objective before and after rank 1 gets more tokens, by its real reducer.
struct Arithmetic {
  std::string recipe;
  verify::ReducedWindow before;
  verify::ReducedWindow after;
};

struct Exercise {
  std::vector<Arithmetic> arithmetic;    ///< must-fail, must-pass
  std::vector<verify::ModelStep> model;  ///< before, after; reducers in the same order
  std::vector<ExampleId> examples;

  bool as_expected() const {
    // With equal counts nobody can tell the two apart; afterwards only one is right.
    const auto pass = [&](size_t step, size_t recipe) {
      return model[step].reducers[recipe].parity.pass;
    };
    const auto objective = [&](size_t recipe, double before, double after) {
      return std::abs(arithmetic[recipe].before.objective - before) < 1e-6 &&
             std::abs(arithmetic[recipe].after.objective - after) < 1e-6;
    };
    return pass(0, 0) && pass(0, 1) && !pass(1, 0) && pass(1, 1) && objective(0, 2.0, 2.0) &&
           objective(1, 2.0, 2.5);
  }
};

Arithmetic arithmetic_of(const run::Job& job) {
  constexpr int64_t kWorld = 2;
  const int64_t divisor =
      job.policy.call([](const SyncPolicy& policy) { return policy.divisor(kWorld); });
  return job.reducer.call([&](const LossReducer& reducer) {
    const auto reduce = [&](int64_t tokens) {
      return verify::reduce_by_hand(reducer, verify::exercise_window(tokens), divisor);
    };
    return Arithmetic{job.settings.name, reduce(kBefore), reduce(kAfter)};
  });
}

Exercise work_out(const ExerciseOptions& options) {
  cli::RecipeOptions recipe = options.recipe;
  if (recipe.config.empty()) recipe.config = cli::shipped_config("exercise").string();
  run::Job wrong = recipe.assemble(cli::recipe_or_shipped(options.must_fail, "wrong"));
  run::Job correct = recipe.assemble(cli::recipe_or_shipped(options.must_pass, "correct"));
  Exercise result;
  result.arithmetic = {arithmetic_of(wrong), arithmetic_of(correct)};
  verify::ModelExercise model(correct, {&wrong, &correct}, kAfter);
  result.examples = model.examples();
  result.model = {model.step({kBefore, kBefore}), model.step({kBefore, kAfter})};
  return result;
}

json document_of(const Exercise& exercise) {
  json arithmetic = json::array();
  for (const Arithmetic& row : exercise.arithmetic) {
    const auto window = [](const verify::ReducedWindow& reduced) {
      return json{{"tokens", reduced.tokens},
                  {"objective", reduced.objective},
                  {"token_weights", reduced.weights}};
    };
    arithmetic.push_back(
        {{"recipe", row.recipe}, {"before", window(row.before)}, {"after", window(row.after)}});
  }
  json model = json::array();
  for (const verify::ModelStep& step : exercise.model) {
    json recipes = json::array();
    for (const verify::ModelGradient& gradient : step.reducers) {
      const verify::Parity& parity = gradient.parity;
      json entry{{"name", parity.recipe},
                 {"norm", gradient.norm},
                 {"values", parity.values},
                 {"max_abs_error", parity.max_abs_error},
                 {"out_of_tolerance", parity.out_of_tolerance},
                 {"pass", parity.pass}};
      if (!parity.diagnosis.empty()) entry["diagnosis"] = parity.diagnosis;
      recipes.push_back(std::move(entry));
    }
    model.push_back({{"supervised", step.counts},
                     {"reference_norm", step.reference_norm},
                     {"recipes", recipes}});
  }
  return {{"arithmetic", arithmetic},
          {"model", model},
          {"examples", exercise.examples},
          {"as_expected", exercise.as_expected()}};
}

void show_arithmetic(const Exercise& exercise, const cli::Terminal& terminal) {
  terminal.line(fmt::format(
      "by hand: rank 0 keeps {0} tokens of loss 1, rank 1 goes from {0} to {1} tokens of loss 3",
      kBefore, kAfter));
  const auto text = [](double value) { return fmt::format("{:.6g}", value); };
  const auto weights = [](const verify::ReducedWindow& window) {
    return fmt::format("1/{:.0f}, 1/{:.0f}", 1.0 / window.weights[0], 1.0 / window.weights[1]);
  };
  report::Table table({{"recipe"},
                       {"loss before", Align::kRight},
                       {"loss after", Align::kRight},
                       {"a token weighs before"},
                       {"a token weighs after"}});
  for (const Arithmetic& row : exercise.arithmetic) {
    table.row({row.recipe, text(row.before.objective), text(row.after.objective),
               weights(row.before), weights(row.after)});
  }
  terminal.line(table.text(terminal.colour()));
}

void show_model(const Exercise& exercise, const cli::Terminal& terminal) {
  terminal.line(fmt::format(
      "in the model: one sequence a rank (training examples {} and {}), its first positions "
      "supervised; the gradient against that of one device",
      exercise.examples[0], exercise.examples[1]));
  report::Table table({{"supervised"},
                       {"recipe"},
                       {"|gradient|", Align::kRight},
                       {"|reference|", Align::kRight},
                       {"max |d|", Align::kRight},
                       {"out of tolerance", Align::kRight},
                       {"verdict"}});
  for (const verify::ModelStep& step : exercise.model) {
    for (const verify::ModelGradient& gradient : step.reducers) {
      const verify::Parity& parity = gradient.parity;
      table.row({fmt::format("{}, {}", step.counts[0], step.counts[1]), parity.recipe,
                 fmt::format("{:.6f}", gradient.norm), fmt::format("{:.6f}", step.reference_norm),
                 report::scientific(parity.max_abs_error), report::grouped(parity.out_of_tolerance),
                 parity.pass ? "pass" : "fail"});
    }
  }
  terminal.line(table.text(terminal.colour()));
  for (const verify::ModelStep& step : exercise.model) {
    for (const verify::ModelGradient& gradient : step.reducers) {
      if (!gradient.parity.diagnosis.empty())
        terminal.line(fmt::format("{}: {}", gradient.parity.recipe, gradient.parity.diagnosis));
    }
  }
}

int run(const ExerciseOptions& options, const cli::Terminal& terminal) {
  std::vector<Answer> answers;
  if (options.predict) answers = ask_predictions(terminal);
  const Exercise exercise = work_out(options);
  json document = document_of(exercise);
  if (options.predict) document["predictions"] = document_of(answers);
  terminal.document(document);
  show_arithmetic(exercise, terminal);
  terminal.line();
  show_model(exercise, terminal);
  if (options.predict) show_answers(answers, terminal);
  return exercise.as_expected() ? 0 : 1;
}

}  // namespace

cli::RunVerb declare_exercise(cli::Arguments arguments) {
  auto options = std::make_shared<ExerciseOptions>();
  arguments.flag("--predict", options->predict, "First asks what will come out");
  arguments.text("--must-pass", options->must_pass,
                 "Recipe of the global mean, and of the model; recipes/correct.toml by default");
  arguments.text("--must-fail", options->must_fail,
                 "Recipe of the mean of means; recipes/wrong.toml by default");
  options->recipe.declare(arguments);
  arguments.describe("--config", "Config file instead of configs/exercise.toml");
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
