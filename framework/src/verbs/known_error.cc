#include "verbs/known_error.h"

#include "run/conditions.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>

namespace tally::verbs {
namespace {

using Values = std::map<std::string, std::string>;

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

std::string value_at(const Values& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "nothing" : found->second;
}

std::optional<std::string> first_difference(const Values& ours, const Values& theirs) {
  Values all = ours;
  all.insert(theirs.begin(), theirs.end());
  for (const auto& [key, value] : all) {
    const std::string our_value = value_at(ours, key);
    const std::string their_value = value_at(theirs, key);
    if (our_value != their_value)
      return fmt::format("{} is {} here and {} there", key, our_value, their_value);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> unlike_the_known_error(const cli::RecipeOptions& options,
                                                  const std::filesystem::path& recipe) {
  // What decides the examples, the weights and the loss of a position.
  constexpr std::array<std::string_view, 6> kGround{"seed",     "rng",     "data.",
                                                    "sampler.", "window.", "task."};
  constexpr std::array<std::string_view, 1> kObjective{"loss_reducer."};
  const Values ours = values_of(options, recipe);
  const auto compare = [&](const char* shipped, const auto& prefixes) {
    return first_difference(part_of(ours, prefixes),
                            part_of(values_of(options, cli::shipped_recipe(shipped)), prefixes));
  };
  if (auto difference = compare("wrong", kGround)) return difference;
  return compare("correct", kObjective);
}

}  // namespace tally::verbs
