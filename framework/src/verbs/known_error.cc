#include "verbs/known_error.h"

#include "run/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace tally::verbs {
namespace {

using run::Values;
using Prefixes = std::vector<std::string_view>;

Values values_of(const cli::RecipeOptions& options, const std::filesystem::path& recipe) {
  return run::values_of(options.known_to(recipe).assemble(recipe).recipe);
}

/// Only what begins with one of `prefixes`.
Values part_of(Values values, const Prefixes& prefixes) {
  std::erase_if(values, [&](const auto& entry) {
    return std::none_of(prefixes.begin(), prefixes.end(),
                        [&](std::string_view prefix) { return entry.first.starts_with(prefix); });
  });
  return values;
}

}  // namespace

std::optional<std::string> unlike_the_known_error(const cli::RecipeOptions& options,
                                                  const std::filesystem::path& recipe) {
  // What decides the examples, the weights and the loss of a position.
  const Prefixes ground{"seed", "rng", "data.", "sampler.", "window.", "task."};
  const Prefixes objective{"loss_reducer."};
  const Values ours = values_of(options, recipe);
  const auto compare = [&](const char* shipped,
                           const Prefixes& prefixes) -> std::optional<std::string> {
    const Values theirs = values_of(options, cli::shipped_recipe(shipped));
    const auto found = run::differences(part_of(ours, prefixes), part_of(theirs, prefixes));
    if (found.empty()) return std::nullopt;
    return fmt::format("{} is {} here and {} there", found.front().key, found.front().one,
                       found.front().other);
  };
  if (auto difference = compare("wrong", ground)) return difference;
  return compare("correct", objective);
}

}  // namespace tally::verbs
