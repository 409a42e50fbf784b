#include "random_document.h"
#include "recipe_files.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <limits>

namespace tally::recipe {
namespace {

class Resolved : public RecipeFiles {
 protected:
  static Recipe load(const std::filesystem::path& file) {
    return Recipe::load({file, std::nullopt, {}});
  }

  /// What is left of a recipe when it is stored and loaded again.
  static Recipe stored(const Recipe& recipe) {
    write("stored/recipe.toml", recipe.resolved());
    return load("stored/recipe.toml");
  }

  /// Keys and values, without the origins.
  static nlohmann::json values_of(const Recipe& recipe) {
    nlohmann::json values = nlohmann::json::object();
    for (const auto& line : nlohmann::json::parse(recipe.with_origins_json())) {
      values[line.at("key").get<std::string>()] = line.at("value");
    }
    return values;
  }
};

TEST_F(Resolved, IsInASensibleOrderWithoutTheConfig) {
  write("configs/c.toml", "seed = 1\n[run]\nranks = 2\n[run.deep]\nx = 1\n[b.only.sections]\n");
  const Recipe recipe = load_text(
      "config = \"../configs/c.toml\"\nname = \"n\"\n[[state]]\nz = 1\nplugin = \"p\"\n[[state]]\n"
      "[state.inner]\na = [{b = 1}, 2, [], {}]\n[sampler]\nalpha = 1e-5\nhook = \"h\"\n"
      "plugin = \"s\"\n[task]\n");
  EXPECT_EQ(recipe.resolved(),
            "name = \"n\"\nseed = 1\n\n[task]\n\n"
            "[sampler]\nplugin = \"s\"\nhook = \"h\"\nalpha = 1e-05\n\n"
            "[[state]]\nplugin = \"p\"\nz = 1\n\n[[state]]\n\n[state.inner]\n"
            "a = [{ b = 1 }, 2, [], {}]\n\n"
            "[b.only.sections]\n\n[run]\nranks = 2\n\n[run.deep]\nx = 1\n");
  EXPECT_EQ(stored(recipe).resolved(), recipe.resolved());
}

TEST_F(Resolved, TextDependsOnTheValuesAlone) {
  const std::string text = load_text("name = \"n\"\n[a]\nb = 2\nc = 1.5\n").resolved();
  EXPECT_EQ(load_text("a.c = 15e-1\na.b = 0x2\n", {"name=n"}).resolved(), text);
  const Recipe defaults = load_text("name = 'n'\n");
  defaults.section("a").number("c", 1.5);
  defaults.section("a").integer("b", 2);
  EXPECT_EQ(defaults.resolved(), text);
}

TEST_F(Resolved, StringsKeepEveryCharacter) {
  std::string text;
  for (char c = 1; c > 0 && c < 127; ++c) text += c;
  text += "\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
  const Recipe recipe = load_text("");
  recipe.section("").text("all", text);
  EXPECT_EQ(stored(recipe).section("").text("all"), text);
}

TEST_F(Resolved, IntegersKeepTheirLimits) {
  const Recipe recipe = load_text("");
  const std::vector<int64_t> limits = {std::numeric_limits<int64_t>::min(),
                                       std::numeric_limits<int64_t>::max(), 0, -1};
  recipe.section("").integers("limits", limits);
  EXPECT_EQ(stored(recipe).section("").integers("limits"), limits);
}

TEST_F(Resolved, DoublesKeepEveryBit) {
  std::mt19937_64 random(11);
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 1e22,
                                 123456789.0,
                                 std::numeric_limits<double>::denorm_min(),
                                 std::numeric_limits<double>::min(),
                                 std::numeric_limits<double>::max()};
  while (numbers.size() < 3000) {
    const uint64_t bits = random();
    double number = 0;
    std::memcpy(&number, &bits, sizeof(number));
    if (std::isfinite(number)) numbers.push_back(number);
  }
  const Recipe recipe = load_text("");
  for (size_t i = 0; i < numbers.size(); ++i) {
    recipe.section("s").number("n" + std::to_string(i), numbers[i]);
  }
  const Recipe again = stored(recipe);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double number = again.section("s").number("n" + std::to_string(i));
    ASSERT_EQ(std::memcmp(&number, &numbers[i], sizeof(number)), 0) << numbers[i];
  }
  EXPECT_EQ(again.resolved(), recipe.resolved());
}

TEST_F(Resolved, NumbersThatNobodyReadsMayBeInfinite) {
  const Recipe recipe = load_text("[s]\na = inf\nb = -inf\nc = nan\n");
  EXPECT_EQ(recipe.resolved(), "name = \"x\"\n\n[s]\na = inf\nb = -inf\nc = nan\n");
}

TEST_F(Resolved, RandomRecipesLoadAsWrittenAndAgainToTheSameText) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    RandomDocument document(seed);
    const nlohmann::json values = document.table();
    const Recipe recipe = load_text(document.text_of(values));
    nlohmann::json expected = flattened(values);
    expected["name"] = "x";
    ASSERT_EQ(values_of(recipe), expected) << document.text_of(values);
    const Recipe again = stored(recipe);
    ASSERT_EQ(again.resolved(), recipe.resolved()) << "seed " << seed;
    ASSERT_EQ(values_of(again), expected) << "seed " << seed;
    ASSERT_EQ(again.digest(), recipe.digest());
  }
}

TEST_F(Resolved, RandomRecipesMergeWithTheirConfigsAsJsonMergePatchSays) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    RandomDocument document(seed);
    nlohmann::json expected = document.table();
    const nlohmann::json over = document.table();
    write("configs/c.toml", document.text_of(expected));
    const Recipe recipe =
        load_text("config = \"../configs/c.toml\"\nname = \"x\"\n" + document.text_of(over));
    expected.merge_patch(over);  // RFC 7396, which knows nothing of this code
    expected["name"] = "x";
    ASSERT_EQ(values_of(recipe), flattened(expected)) << "seed " << seed;
  }
}

TEST_F(Resolved, PluginPathsAreAbsoluteFromTheFileThatWroteThem) {
  write("configs/c.toml", "[task]\nplugin = \"../lib/t.so\"\npath = \"../lib/t.so\"\n");
  const Recipe recipe = load_text(
      "config = \"../configs/c.toml\"\n[sampler]\nplugin = \"rank_split\"\n[sampler.inner]\n"
      "plugin = \"./i.so\"\n[[state]]\nplugin = \"/opt/s.so\"\n[[state]]\nplugin = \"own/s.so\"\n",
      {"loss_reducer.plugin=./l.so"});
  const std::string text = recipe.resolved();
  const nlohmann::json values = values_of(recipe);
  EXPECT_EQ(values["task.plugin"], (folder_ / "lib/t.so").string());
  EXPECT_EQ(values["task.path"], "../lib/t.so");
  EXPECT_EQ(values["sampler.plugin"], "rank_split");
  EXPECT_EQ(values["sampler.inner.plugin"], (folder_ / "recipes/i.so").string());
  EXPECT_EQ(values["state[0].plugin"], "/opt/s.so");
  EXPECT_EQ(values["state[1].plugin"], (folder_ / "recipes/own/s.so").string());
  EXPECT_EQ(values["loss_reducer.plugin"], (folder_ / "l.so").string());
  EXPECT_EQ(recipe.section("task").text("plugin"), "../lib/t.so")
      << "a reader sees what is written";
  EXPECT_EQ(stored(recipe).resolved(), recipe.resolved());
}

TEST_F(Resolved, DigestIsOfTheText) {
  const Recipe recipe = load_text("name = \"x\"\n[run]\nranks = 1\n");
  EXPECT_EQ(recipe.digest(), sha256("name = \"x\"\n\n[run]\nranks = 1\n"));
}

}  // namespace
}  // namespace tally::recipe
