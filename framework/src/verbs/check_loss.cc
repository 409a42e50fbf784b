#include "cli/recipe_options.h"
#include "report/table.h"
#include "verbs/verbs.h"
#include "verify/loss_check.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <memory>

namespace tally::verbs {
namespace {

using nlohmann::json;
using report::Align;
using verify::Formula;
using verify::LossCheck;
using verify::ReducedWindow;

constexpr int64_t kWorld = 2;

struct CheckLossOptions {
  cli::RecipeOptions recipe;
  std::vector<std::string> must_pass;
  std::vector<std::string> must_fail;
};

LossCheck check_recipe(const CheckLossOptions& options, const std::filesystem::path& file,
                       Formula expected) {
  const run::Job job = options.recipe.assemble(file);
  const int64_t divisor =
      job.policy.call([](const SyncPolicy& policy) { return policy.divisor(kWorld); });
  LossCheck check = job.reducer.call(
      [&](const LossReducer& reducer) { return verify::check_loss(reducer, divisor, expected); });
  check.recipe = job.settings.name;
  check.reducer = job.reducer.identity().hook;
  return check;
}

/// The shipped wrong recipe is the mean of means; of another one only that it is wrong is known.
std::vector<LossCheck> check_all(const CheckLossOptions& options) {
  std::vector<LossCheck> checks;
  if (options.must_fail.empty())
    checks.push_back(check_recipe(options, cli::shipped_recipe("wrong"), Formula::kMeanOfMeans));
  for (const std::string& file : options.must_fail)
    checks.push_back(check_recipe(options, file, Formula::kNotGlobalMean));
  if (options.must_pass.empty())
    checks.push_back(check_recipe(options, cli::shipped_recipe("correct"), Formula::kGlobalMean));
  for (const std::string& file : options.must_pass)
    checks.push_back(check_recipe(options, file, Formula::kGlobalMean));
  return checks;
}

json document_of(const ReducedWindow& window) {
  return {{"tokens", window.tokens},
          {"sums", window.sums},
          {"contributions", window.contributions},
          {"token_weights", window.weights},
          {"objective", window.objective},
          {"unsupervised_gradient", window.unsupervised_gradient}};
}

json document_of(const LossCheck& check) {
  json two = document_of(check.two_microbatches);
  two["divided_again"] = check.divided_again;
  return {{"recipe", check.recipe},
          {"reducer", check.reducer},
          {"expected", verify::name_of(check.expected)},
          {"divisor", check.divisor},
          {"unequal", document_of(check.unequal)},
          {"two_microbatches", two},
          {"blind_spots",
           {{"equal_counts", document_of(check.equal_counts)},
            {"equal_means", document_of(check.equal_means)}}},
          {"one_parameter",
           {{"losses", check.one_parameter.losses}, {"gradient", check.one_parameter.gradient}}},
          {"unexpected", check.unexpected},
          {"as_expected", check.as_expected()}};
}

json document_of(const std::vector<LossCheck>& checks) {
  const verify::HandWindow window = verify::unequal_window();
  json reducers = json::array();
  bool as_expected = true;
  for (const LossCheck& check : checks) {
    reducers.push_back(document_of(check));
    as_expected = as_expected && check.as_expected();
  }
  return {{"ranks", kWorld},
          {"mean_of_means", verify::mean_of_means(window)},
          {"global_mean", verify::global_mean(window)},
          {"reducers", reducers},
          {"as_expected", as_expected}};
}

/// "1/24" for what is one over a whole number.
std::string fraction(double value) {
  const double inverse = 1.0 / value;
  if (std::abs(inverse - std::round(inverse)) < 1e-6 * std::abs(inverse))
    return fmt::format("1/{:.0f}", inverse);
  return fmt::format("{:.6g}", value);
}

std::string number(double value) { return fmt::format("{:.6g}", value); }

/// Two ranks side by side: "12, 36".
template <class T, class Text>
std::string by_rank(const std::vector<T>& values, Text text) {
  std::string joined;
  for (const T& value : values) joined += (joined.empty() ? "" : ", ") + text(value);
  return joined;
}

void show_weights(const std::vector<LossCheck>& checks, const cli::Terminal& terminal) {
  const ReducedWindow& window = checks.front().unequal;
  terminal.line(fmt::format(
      "two ranks, by rank: tokens {}, sums of losses {}; mean of means {}, global mean {}",
      by_rank(window.tokens, [](int64_t n) { return std::to_string(n); }),
      by_rank(window.sums, number), number(verify::mean_of_means(verify::unequal_window())),
      number(verify::global_mean(verify::unequal_window()))));
  report::Table table({{"recipe"},
                       {"reducer"},
                       {"contribution by rank"},
                       {"one token weighs"},
                       {"loss", Align::kRight},
                       {"2 microbatches", Align::kRight},
                       {"divided again", Align::kRight},
                       {"must be"},
                       {"as expected"}});
  for (const LossCheck& check : checks) {
    table.row({check.recipe, check.reducer, by_rank(check.unequal.contributions, number),
               by_rank(check.unequal.weights, fraction), number(check.unequal.objective),
               number(check.two_microbatches.objective), number(check.divided_again),
               verify::name_of(check.expected),
               check.as_expected() ? report::Cell("yes", report::Tone::kGood)
                                   : report::Cell("no", report::Tone::kBad)});
  }
  terminal.line(table.text(terminal.colour()));
}

void show_blind_spots(const std::vector<LossCheck>& checks, const cli::Terminal& terminal) {
  terminal.line("blind spots: here both formulas agree, so a test with such data proves nothing");
  std::vector<report::Column> columns{{"window"}, {"tokens"}, {"local means"}};
  for (const LossCheck& check : checks) columns.push_back({check.recipe, Align::kRight});
  report::Table table(columns);
  const auto row = [&](const char* name, const char* means, ReducedWindow LossCheck::*window) {
    std::vector<report::Cell> cells{
        name, by_rank((checks.front().*window).tokens, [](int64_t n) { return std::to_string(n); }),
        means};
    for (const LossCheck& check : checks) cells.emplace_back(number((check.*window).objective));
    table.row(std::move(cells));
  };
  row("equal counts", "1, 3", &LossCheck::equal_counts);
  row("equal local means", "2, 2", &LossCheck::equal_means);
  terminal.line(table.text(terminal.colour()));
}

void show_one_parameter(const std::vector<LossCheck>& checks, const cli::Terminal& terminal) {
  terminal.line(
      "one parameter at 0, squared error, 12 targets +1 on rank 0 and 36 targets -1 on rank 1");
  report::Table table({{"recipe"}, {"loss by rank"}, {"gradient", Align::kRight}});
  for (const LossCheck& check : checks) {
    table.row({check.recipe, by_rank(check.one_parameter.losses, number),
               number(check.one_parameter.gradient)});
  }
  terminal.line(table.text(terminal.colour()));
}

int run(const CheckLossOptions& options, const cli::Terminal& terminal) {
  const std::vector<LossCheck> checks = check_all(options);
  terminal.document(document_of(checks));
  show_weights(checks, terminal);
  terminal.line();
  show_blind_spots(checks, terminal);
  terminal.line();
  show_one_parameter(checks, terminal);
  int exit_code = 0;
  for (const LossCheck& check : checks) {
    for (const std::string& sentence : check.unexpected)
      fmt::print(stderr, "tally: recipe '{}': {}\n", check.recipe, sentence);
    if (!check.as_expected()) exit_code = 1;
  }
  return exit_code;
}

}  // namespace

cli::RunVerb declare_check_loss(cli::Arguments arguments) {
  auto options = std::make_shared<CheckLossOptions>();
  arguments.texts("--must-pass", options->must_pass,
                  "Recipe whose loss must be the global mean; recipes/correct.toml by default");
  arguments.texts("--must-fail", options->must_fail,
                  "Recipe whose loss must be another; recipes/wrong.toml by default");
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
