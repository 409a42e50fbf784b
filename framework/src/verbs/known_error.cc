#include "verbs/known_error.h"

#include "run/conditions.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace tally::verbs {
namespace {

using run::Values;

Values values_of(const cli::RecipeOptions& options, const std::filesystem::path& recipe) {
  return run::values_of(options.known_to(recipe).assemble(recipe).recipe);
}

/// Only what begins with one of `prefixes`.
template <size_t n>
Values part_of(const Values& values, const std::array<std::string_view, n>& prefixes) {
  Values part;
  for (const auto& [key, value] : values) {
    for (const std::string_view prefix : prefixes)
      if (key.starts_with(prefix)) part.emplace(key, value);
  }
  return part;
}

}  // namespace

std::optional<std::string> unlike_the_known_error(const cli::RecipeOptions& options,
                                                  const std::filesystem::path& recipe) {
  // What decides the examples, the weights and the loss of a position.
  constexpr std::array<std::string_view, 6> kGround{"seed",     "rng",     "data.",
                                                    "sampler.", "window.", "task."};
  constexpr std::array<std::string_view, 1> kObjective{"loss_reducer."};
  const Values ours = values_of(options, recipe);
  const auto compare = [&](const char* shipped,
                           const auto& prefixes) -> std::optional<std::string> {
    const Values theirs = values_of(options, cli::shipped_recipe(shipped));
    const auto found = run::differences(part_of(ours, prefixes), part_of(theirs, prefixes));
    if (found.empty()) return std::nullopt;
    return fmt::format("{} is {} here and {} there", found.front().key, found.front().one,
                       found.front().other);
  };
  if (auto difference = compare("wrong", kGround)) return difference;
  return compare("correct", kObjective);
}

}  // namespace tally::verbs
