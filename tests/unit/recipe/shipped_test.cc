#include "recipe_files.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <map>

namespace tally::recipe {
namespace {

using Values = std::map<std::string, nlohmann::json>;

Recipe shipped(const std::string& recipe, std::optional<std::filesystem::path> config = {}) {
  const std::filesystem::path folder = TALLY_SOURCE_FOLDER;
  return Recipe::load({folder / "recipes" / (recipe + ".toml"), std::move(config), {}});
}

Values values_of(const Recipe& recipe) {
  Values values;
  for (const auto& line : nlohmann::json::parse(recipe.with_origins_json())) {
    values[line.at("key")] = line.at("value");
  }
  return values;
}

/// The keys in which two recipes differ: "key: value here / value there".
std::vector<std::string> differences(const Values& here, const Values& there) {
  Values keys = here;
  keys.insert(there.begin(), there.end());
  const auto shown = [](const Values& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? "absent" : found->second.dump();
  };
  std::vector<std::string> result;
  for (const auto& [key, value] : keys) {
    if (shown(here, key) != shown(there, key)) {
      result.push_back(key + ": " + shown(here, key) + " / " + shown(there, key));
    }
  }
  return result;
}

std::vector<std::string> lines_of(const std::string& recipe) {
  std::ifstream stream(std::filesystem::path(TALLY_SOURCE_FOLDER) / "recipes" / recipe);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

using Differences = std::vector<std::string>;

TEST(ShippedRecipes, CorrectSaysThis) {
  const Values expected = {
      {"name", "correct"},
      {"seed", 1},
      {"rng", "stream"},
      {"task.plugin", "tiny_lm"},
      {"sampler.plugin", "rank_split"},
      {"window.shards", 2},
      {"window.accumulation", 2},
      {"window.batch_size", 8},
      {"loss_reducer.plugin", "token_mean"},
      {"sync_policy.plugin", "no_sync"},
      {"state[0].plugin", "rng_state"},
      {"state[1].plugin", "sampler_state"},
      {"run.ranks", 2},
      {"run.timeout", 300},
      {"run.threads", 1},
      {"run.device", "auto"},
      {"run.backend", "auto"},
      {"run.deterministic", true},
      {"run.allow_idle_ranks", false},
      {"data.folder", "data"},
      {"train.updates", 100},
      {"train.stop_at", 50},
      {"train.on_empty_window", "error"},
      {"optimizer.name", "sgd"},
      {"optimizer.learning_rate", 0.05},
      {"optimizer.momentum", 0.0},
      {"optimizer.weight_decay", 0.0},
      {"checkpoint.folder", "artifacts/checkpoints"},
  };
  EXPECT_EQ(differences(values_of(shipped("correct")), expected), Differences{});
}

TEST(ShippedRecipes, TheThreeDifferInNameAndOneValueEach) {
  const Values correct = values_of(shipped("correct"));
  EXPECT_EQ(differences(correct, values_of(shipped("reference"))),
            (Differences{"name: \"correct\" / \"reference\"", "run.ranks: 2 / 1"}));
  EXPECT_EQ(differences(correct, values_of(shipped("wrong"))),
            (Differences{"loss_reducer.plugin: \"token_mean\" / \"rank_mean\"",
                         "name: \"correct\" / \"wrong\""}));
}

TEST(ShippedRecipes, TheThreeDifferInNameAndOneLineEach) {
  std::vector<std::string> wrong = lines_of("correct.toml");
  ASSERT_EQ(wrong.at(0), "name = \"correct\"");
  ASSERT_EQ(wrong.at(8), "plugin = \"token_mean\"");
  std::vector<std::string> reference = wrong;
  wrong[0] = "name = \"wrong\"";
  wrong[8] = "plugin = \"rank_mean\"";
  EXPECT_EQ(lines_of("wrong.toml"), wrong);
  reference[0] = "name = \"reference\"";
  reference.insert(reference.begin() + 2, "run.ranks = 1");
  EXPECT_EQ(lines_of("reference.toml"), reference);
}

TEST(ShippedRecipes, MaskedUsesTheOptionsOfTheTask) {
  EXPECT_EQ(differences(values_of(shipped("correct")), values_of(shipped("masked"))),
            (Differences{"name: \"correct\" / \"masked\"", "rng: \"stream\" / \"keyed\"",
                         "task.dropout: absent / 0.1", "task.labels: absent / \"inputs\"",
                         "task.prompt_length: absent / 8"}));
}

TEST(ShippedRecipes, ExerciseIsMinimumMadeSmall) {
  const std::filesystem::path exercise =
      std::filesystem::path(TALLY_SOURCE_FOLDER) / "configs" / "exercise.toml";
  EXPECT_EQ(differences(values_of(shipped("correct")), values_of(shipped("correct", exercise))),
            (Differences{"train.stop_at: 50 / 1", "train.updates: 100 / 1",
                         "window.accumulation: 2 / 1", "window.batch_size: 8 / 1"}));
}

TEST(ShippedRecipes, ConfigsHoldSectionsOfTheHostAlone) {
  // Any hook can then be swapped by the line that names its plugin.
  for (const char* name : {"minimum", "exercise"}) {
    const std::filesystem::path config =
        std::filesystem::path(TALLY_SOURCE_FOLDER) / "configs" / (std::string(name) + ".toml");
    std::ifstream stream(config);
    std::vector<std::string> sections;
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with('[')) sections.push_back(line);
    }
    EXPECT_THAT(sections,
                ::testing::UnorderedElementsAre("[run]", "[data]", "[train]", "[optimizer]",
                                                "[window]", "[checkpoint]"))
        << config;
  }
}

}  // namespace
}  // namespace tally::recipe
