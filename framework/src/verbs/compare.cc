#include "report/numbers.h"
#include "report/table.h"
#include "verbs/gradients.h"
#include "verbs/verbs.h"
#include "verify/parity.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace tally::verbs {
namespace {

struct CompareOptions {
  cli::RecipeOptions recipe;
  std::string reference;
  std::vector<std::string> must_pass;
  std::vector<std::string> must_fail;
  int64_t windows = 1;
};

struct Row {
  verify::Parity parity;
  bool must_pass = true;
  bool as_expected() const { return parity.pass == must_pass; }
};

Row compare_recipe(const CompareOptions& options, const verify::GradientSet& reference,
                   const std::filesystem::path& file, bool must_pass) {
  const int exit_code = launch_gradients(options.recipe, file, options.windows);
  const std::string name = options.recipe.load(file).name();
  if (exit_code != 0)
    throw Error(fmt::format("the gradients of '{}' could not be computed", name), exit_code);
  return {verify::compare_gradients(reference, verify::load_gradients(gradients_file(name))),
          must_pass};
}

std::vector<Row> compare_all(const CompareOptions& options, const verify::GradientSet& reference) {
  std::vector<Row> rows;
  const auto add = [&](const std::vector<std::string>& given, const char* shipped, bool must_pass) {
    if (given.empty())
      rows.push_back(compare_recipe(options, reference, cli::shipped_recipe(shipped), must_pass));
    for (const std::string& file : given)
      rows.push_back(compare_recipe(options, reference, file, must_pass));
  };
  add(options.must_fail, "wrong", false);
  add(options.must_pass, "correct", true);
  return rows;
}

nlohmann::json document_of(const std::vector<Row>& rows, const verify::GradientSet& reference) {
  nlohmann::json recipes = nlohmann::json::array();
  for (const Row& row : rows) {
    const verify::Parity& parity = row.parity;
    nlohmann::json entry{{"name", parity.recipe},
                         {"values", parity.values},
                         {"max_abs_error", parity.max_abs_error},
                         {"max_rel_error", parity.max_rel_error},
                         {"max_reference", parity.max_reference},
                         {"out_of_tolerance", parity.out_of_tolerance},
                         {"pass", parity.pass},
                         {"must_pass", row.must_pass},
                         {"gradients", gradients_file(parity.recipe).string()}};
    if (!parity.diagnosis.empty()) entry["diagnosis"] = parity.diagnosis;
    recipes.push_back(std::move(entry));
  }
  return {
      {"reference", reference.recipe}, {"windows", reference.windows.size()}, {"recipes", recipes}};
}

void show(const std::vector<Row>& rows, const verify::GradientSet& reference,
          const cli::Terminal& terminal) {
  using report::Align;
  report::Table table({{"recipe"},
                       {"values", Align::kRight},
                       {"max |d|", Align::kRight},
                       {"max |d|/|ref|", Align::kRight},
                       {"out of tolerance", Align::kRight},
                       {"verdict"},
                       {"expected"}});
  for (const Row& row : rows) {
    const verify::Parity& parity = row.parity;
    table.row({parity.recipe, report::grouped(parity.values),
               report::scientific(parity.max_abs_error), report::scientific(parity.max_rel_error),
               report::grouped(parity.out_of_tolerance),
               report::Cell(parity.pass ? "pass" : "fail",
                            row.as_expected() ? report::Tone::kGood : report::Tone::kBad),
               row.must_pass ? "pass" : "fail"});
  }
  terminal.line(
      fmt::format("gradients of {} window(s) against '{}' on {} rank; tolerance 1e-6 + 1e-4 |ref|, "
                  "largest |ref| {}",
                  reference.windows.size(), reference.recipe, reference.world,
                  report::scientific(rows.front().parity.max_reference)));
  terminal.line(table.text(terminal.colour()));
  for (const Row& row : rows) {
    if (!row.parity.diagnosis.empty())
      terminal.line(fmt::format("{}: {}", row.parity.recipe, row.parity.diagnosis));
  }
}

int run(const CompareOptions& options, const cli::Terminal& terminal) {
  const files::FolderLocks lock = lock_gradients();
  cli::RecipeOptions for_reference = options.recipe;
  for_reference.ranks.clear();  // the reference keeps the number that its recipe says
  const verify::GradientSet reference = ensure_reference(
      for_reference, cli::recipe_or_shipped(options.reference, "reference"), options.windows);
  const std::vector<Row> rows = compare_all(options, reference);
  terminal.document(document_of(rows, reference));
  show(rows, reference, terminal);
  for (const Row& row : rows) {
    if (!row.as_expected()) return 1;
  }
  return 0;
}

}  // namespace

cli::RunVerb declare_compare(cli::Arguments arguments) {
  auto options = std::make_shared<CompareOptions>();
  arguments.text("--reference", options->reference,
                 "Recipe of the reference; recipes/reference.toml by default");
  arguments.texts("--must-pass", options->must_pass,
                  "Recipe that must agree; recipes/correct.toml by default");
  arguments.texts("--must-fail", options->must_fail,
                  "Recipe that must not agree; recipes/wrong.toml by default");
  arguments.count("--windows", options->windows, 1, kMaxWindows,
                  "How many windows, from the first");
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
