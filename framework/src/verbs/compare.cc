#include "process/exit_code.h"
#include "report/json_number.h"
#include "report/numbers.h"
#include "report/table.h"
#include "verbs/gradients.h"
#include "verbs/known_error.h"
#include "verbs/verbs.h"
#include "verify/parity.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace tally::verbs {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  cli::RecipeOptions recipe;
  std::string reference;
  std::vector<std::string> must_pass;
  std::vector<std::string> must_fail;
  int64_t windows = 1;
  verify::Tolerance tolerance;
};

struct Row {
  std::string reference;
  verify::Parity parity;
  bool must_pass = true;
  bool as_expected() const { return parity.pass == must_pass; }
};

/// What is compared with what.
struct Comparison {
  CompareOptions options;  ///< With the shipped recipes where none was named.
  std::vector<std::string> remarks;

  /// A recipe that must pass is measured against itself on one rank. One that must fail is measured
  /// against the first of those: it is that recipe with an error in it.
  fs::path reference_of(const fs::path& recipe, bool must_pass) const {
    if (!options.reference.empty()) return options.reference;
    return must_pass ? recipe : fs::path(options.must_pass.front());
  }
};

Comparison plan(const CompareOptions& given) {
  Comparison comparison{given, {}};
  CompareOptions& options = comparison.options;
  if (options.must_pass.empty()) options.must_pass = {cli::shipped_recipe("correct").string()};
  if (!options.must_fail.empty()) return comparison;
  const fs::path wrong = cli::shipped_recipe("wrong");
  const std::string& tested = options.must_pass.front();
  if (const auto difference = unlike_the_known_error(options.recipe, tested)) {
    comparison.remarks.push_back(
        fmt::format("{} is no known error of {}: {}; name one with --must-fail, or nothing shows "
                    "that this comparison can fail",
                    wrong.string(), tested, *difference));
  } else {
    options.must_fail = {wrong.string()};
  }
  return comparison;
}

/// An option of a plugin reaches the recipes that have the plugin, and one that none has is an
/// error.
void require_known_sets(const CompareOptions& options) {
  std::set<std::string> known;
  for (const auto& files : {options.must_pass, options.must_fail}) {
    for (const std::string& file : files) {
      const auto sets = options.recipe.known_to(file).sets;
      known.insert(sets.begin(), sets.end());
    }
  }
  for (const std::string& set : options.recipe.sets)
    if (!known.contains(set)) options.recipe.assemble(options.must_pass.front());
}

class Measurement {
 public:
  explicit Measurement(const Comparison& comparison) : comparison_(comparison) {}

  Row row(const fs::path& recipe, bool must_pass) {
    const verify::GradientSet& expected = reference(comparison_.reference_of(recipe, must_pass));
    const CompareOptions& options = comparison_.options;
    const cli::RecipeOptions own = options.recipe.known_to(recipe);
    const fs::path file = gradients_file(own.load(recipe).name());
    make_gradients(own, recipe, options.windows, file);
    return {expected.recipe,
            verify::compare_gradients(expected, verify::load_gradients(file), options.tolerance),
            must_pass};
  }

 private:
  const verify::GradientSet& reference(const fs::path& recipe) {
    const auto found = references_.find(recipe);
    if (found != references_.end()) return found->second;
    const CompareOptions& options = comparison_.options;
    return references_
        .emplace(recipe, make_reference(options.recipe.known_to(recipe), recipe, options.windows,
                                        /*anew=*/false))
        .first->second;
  }

  const Comparison& comparison_;
  std::map<fs::path, verify::GradientSet> references_;
};

std::vector<Row> compare_all(const Comparison& comparison) {
  Measurement measurement(comparison);
  std::vector<Row> rows;
  for (const std::string& file : comparison.options.must_fail)
    rows.push_back(measurement.row(file, /*must_pass=*/false));
  for (const std::string& file : comparison.options.must_pass)
    rows.push_back(measurement.row(file, /*must_pass=*/true));
  return rows;
}

nlohmann::json document_of(const std::vector<Row>& rows, const Comparison& comparison) {
  nlohmann::json recipes = nlohmann::json::array();
  for (const Row& row : rows) {
    const verify::Parity& parity = row.parity;
    nlohmann::json entry{{"name", parity.recipe},
                         {"reference", row.reference},
                         {"values", parity.values},
                         {"max_abs_error", report::number(parity.max_abs_error)},
                         {"max_rel_error", report::number(parity.max_rel_error)},
                         {"max_reference", report::number(parity.max_reference)},
                         {"out_of_tolerance", parity.out_of_tolerance},
                         {"pass", parity.pass},
                         {"must_pass", row.must_pass},
                         {"gradients", gradients_file(parity.recipe).string()}};
    if (!parity.diagnosis.empty()) entry["diagnosis"] = parity.diagnosis;
    recipes.push_back(std::move(entry));
  }
  const CompareOptions& options = comparison.options;
  return {{"windows", options.windows},
          {"absolute_tolerance", options.tolerance.absolute},
          {"relative_tolerance", options.tolerance.relative},
          {"remarks", comparison.remarks},
          {"recipes", recipes}};
}

void show(const std::vector<Row>& rows, const Comparison& comparison,
          const cli::Terminal& terminal) {
  using report::Align;
  report::Table table({{"recipe"},
                       {"reference"},
                       {"values", Align::kRight},
                       {"max |d|", Align::kRight},
                       {"max |d|/|ref|", Align::kRight},
                       {"out of tolerance", Align::kRight},
                       {"verdict"},
                       {"expected"}});
  for (const Row& row : rows) {
    const verify::Parity& parity = row.parity;
    table.row({parity.recipe, row.reference + " on 1 rank", report::grouped(parity.values),
               report::scientific(parity.max_abs_error), report::scientific(parity.max_rel_error),
               report::grouped(parity.out_of_tolerance),
               report::Cell(parity.pass ? "pass" : "fail",
                            row.as_expected() ? report::Tone::kGood : report::Tone::kBad),
               row.must_pass ? "pass" : "fail"});
  }
  const CompareOptions& options = comparison.options;
  terminal.line(fmt::format("gradients of {}; tolerance {:g} + {:g} |ref|, largest |ref| {}",
                            report::counted(options.windows, "window"), options.tolerance.absolute,
                            options.tolerance.relative,
                            report::scientific(rows.front().parity.max_reference)));
  terminal.line(table.text(terminal.colour()));
  for (const Row& row : rows) {
    if (!row.parity.diagnosis.empty())
      terminal.line(fmt::format("{}: {}", row.parity.recipe, row.parity.diagnosis));
  }
}

int run(const CompareOptions& options, const cli::Terminal& terminal) {
  const Comparison comparison = plan(options);
  require_known_sets(comparison.options);
  for (const std::string& remark : comparison.remarks) terminal.remark(remark);
  const files::FolderLocks lock = lock_gradients();
  const std::vector<Row> rows = compare_all(comparison);
  terminal.document(document_of(rows, comparison));
  show(rows, comparison, terminal);
  const bool is_good =
      std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.as_expected(); });
  return is_good ? process::kDone : process::kCheckFailed;
}

}  // namespace

cli::RunVerb declare_compare(cli::Arguments arguments) {
  auto options = std::make_shared<CompareOptions>();
  arguments.text("--reference", options->reference,
                 "Recipe of the reference, on one rank; by default each recipe's own");
  arguments.texts("--must-pass", options->must_pass,
                  "Recipe that must agree; recipes/correct.toml by default");
  arguments.texts("--must-fail", options->must_fail,
                  "Recipe that must not agree; recipes/wrong.toml where that fits");
  arguments.size("--absolute-tolerance", options->tolerance.absolute,
                 "What a value may be off, beside the relative tolerance");
  arguments.size("--relative-tolerance", options->tolerance.relative,
                 "What a value may be off, as a share of the reference's");
  arguments.count("--windows", options->windows, 1, kMaxWindows,
                  "How many windows, from the first");
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
