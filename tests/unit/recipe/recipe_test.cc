#include "recipe/recipe.h"

#include "recipe_files.h"

#include <gmock/gmock.h>

namespace tally::recipe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RecipeLoad : public RecipeFiles {
 protected:
  /// The values that decide who beats whom.
  static Recipe load_both(const Sources& sources) {
    write("recipes/x.toml",
          "name = \"x\"\nconfig = \"../configs/c.toml\"\nrun.ranks = 1\n"
          "[task]\nsizes = [7]\n[[state]]\nplugin = \"own\"\n");
    write("configs/c.toml",
          "seed = 5\n[run]\nranks = 2\nthreads = 3\n[task]\nsizes = [1, 2, 3]\n"
          "[[state]]\nplugin = \"a\"\n[[state]]\nplugin = \"b\"\n");
    write("configs/other.toml", "seed = 6\n[run]\nthreads = 4\n");
    return Recipe::load(sources);
  }

  static std::string load_error(const std::string& text,
                                const std::vector<std::string>& sets = {}) {
    return error_of([&] { load_text(text, sets); });
  }
};

TEST_F(RecipeLoad, RecipeBeatsConfigTableByTableAndArraysAsAWhole) {
  const Recipe recipe = load_both({"recipes/x.toml", std::nullopt, {}});
  EXPECT_EQ(recipe.name(), "x");
  EXPECT_EQ(recipe.section("").integer("seed"), 5);
  EXPECT_EQ(recipe.section("run").integer("ranks"), 1);
  EXPECT_EQ(recipe.section("run").integer("threads"), 3);
  EXPECT_EQ(recipe.section("task").integers("sizes"), (std::vector<int64_t>{7}));
  const std::vector<Section> states = recipe.sections("state");
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].path(), "state[0]");
  EXPECT_EQ(states[0].text("plugin"), "own");
}

TEST_F(RecipeLoad, SetBeatsRecipeAndConfig) {
  const Recipe recipe = load_both({"recipes/x.toml",
                                   std::nullopt,
                                   {"run.ranks=4", "seed=9", "task.deep.er=0.5", "name=other",
                                    "run={threads = 8}", "task.sizes=[2, 4]", "run.ranks=3"}});
  EXPECT_EQ(recipe.name(), "other");
  EXPECT_EQ(recipe.section("").integer("seed"), 9);
  EXPECT_EQ(recipe.section("run").integer("ranks"), 3) << "the last --set of a key decides";
  EXPECT_EQ(recipe.section("run").integer("threads"), 8);
  EXPECT_EQ(recipe.section("task.deep").number("er"), 0.5);
  EXPECT_EQ(recipe.section("task").integers("sizes"), (std::vector<int64_t>{2, 4}));
}

TEST_F(RecipeLoad, GivenConfigReplacesTheNamedOne) {
  const Recipe recipe = load_both({"recipes/x.toml", "configs/other.toml", {}});
  EXPECT_EQ(recipe.section("").integer("seed"), 6);
  EXPECT_EQ(recipe.section("run").integer("threads"), 4);
  EXPECT_EQ(recipe.section("run").integer("ranks"), 1);
}

TEST_F(RecipeLoad, ValueOfSetIsTomlOrElseAString) {
  const Recipe recipe =
      load_text("", {"a.integer=2", "a.float=2.0", "a.boolean=true", "a.quoted=\"2\"", "a.bare=two",
                     "a.empty=", "a.equals=x=y", "a.date=2024-01-01", "a.line=1\nb = 2",
                     "a.path=./plugins/x.so"});
  const Section section = recipe.section("a");
  EXPECT_EQ(section.integer("integer"), 2);
  EXPECT_EQ(section.number("float"), 2.0);
  EXPECT_EQ(section.boolean("boolean"), true);
  EXPECT_EQ(section.text("quoted"), "2");
  EXPECT_EQ(section.text("bare"), "two");
  EXPECT_EQ(section.text("empty"), "");
  EXPECT_EQ(section.text("equals"), "x=y");
  EXPECT_EQ(section.text("date"), "2024-01-01");
  EXPECT_EQ(section.text("line"), "1\nb = 2");
  EXPECT_EQ(section.text("path"), "./plugins/x.so");
}

TEST_F(RecipeLoad, NameIsByDefaultTheFilesName) {
  EXPECT_EQ(load_text("").name(), "x");
  EXPECT_EQ(load_text("").resolved(), "name = \"x\"\n");
  EXPECT_EQ(load_error("name = 3"),
            "recipes/x.toml:1: name = 3 is an integer, but a string was expected");
}

TEST_F(RecipeLoad, FilesThatCannotBeRead) {
  EXPECT_EQ(error_of([] {
              Recipe::load({"recipes/none.toml", std::nullopt, {}});
            }),
            "recipes/none.toml: cannot be read: No such file or directory");
  write("recipes/x.toml", "config = \"../configs/c.toml\"\n");
  EXPECT_EQ(error_of([] {
              Recipe::load({"recipes", std::nullopt, {}});
            }),
            "recipes: is a folder, but a TOML file was expected");
  EXPECT_EQ(error_of([] {
              Recipe::load({"recipes/x.toml", "configs/none.toml", {}});
            }),
            "configs/none.toml: cannot be read: No such file or directory");
  EXPECT_EQ(load_error("\nconfig = \"../configs/none.toml\"\n"),
            "recipes/x.toml:2: config = \"../configs/none.toml\" names configs/none.toml, which "
            "does not exist: correct the path (it starts at the recipe's folder), or give another "
            "config with -c FILE");
  EXPECT_EQ(load_error("config = 3\n"),
            "recipes/x.toml:1: config = 3 is an integer, but the path of a config was expected");
}

TEST_F(RecipeLoad, ConfigOfAConfig) {
  write("configs/c.toml", "seed = 1\nconfig = \"d.toml\"\n");
  EXPECT_EQ(load_error("config = \"../configs/c.toml\"\n"),
            "configs/c.toml:2: a config cannot name another config: is configs/c.toml a recipe? -c "
            "takes a config");
  EXPECT_EQ(load_error("", {"config=configs/c.toml"}),
            "--set config: a config is replaced with -c FILE");
}

TEST_F(RecipeLoad, ConfigBesideALinkedFolderIsTheOneBesideItsTarget) {
  write("elsewhere/recipes/y.toml", "config = \"../configs/c.toml\"\n");
  write("elsewhere/configs/c.toml", "seed = 1\n");
  write("configs/c.toml", "seed = 2\n");
  std::filesystem::create_directory_symlink("elsewhere/recipes", "recipes");
  EXPECT_EQ(Recipe::load({"recipes/y.toml", std::nullopt, {}}).section("").integer("seed"), 1);
}

TEST_F(RecipeLoad, TextThatIsNoToml) {
  EXPECT_THAT(load_error("seed = 1\n\nrun = = 3\n"),
              StartsWith("recipes/x.toml:3: is no TOML (column 7): "));
  EXPECT_THAT(load_error("a = 1\nb = 2\na = 3\n"), StartsWith("recipes/x.toml:3: is no TOML"));
  EXPECT_THAT(load_error("a = 1\nb = 2\na = 3\n"), HasSubstr("cannot redefine existing integer"));
  EXPECT_THAT(load_error("[run]\na = 1\n[run]\n"), StartsWith("recipes/x.toml:3: is no TOML"));
}

TEST_F(RecipeLoad, KeysAndValuesOfNoUse) {
  EXPECT_EQ(load_error("[run]\n\"a b\" = 1\n"),
            "recipes/x.toml:2: the key \"a b\" in run cannot be used: keys are letters, digits, "
            "'-' and '_'");
  EXPECT_EQ(load_error("", {"run={\"a.b\" = 1}"}),
            "--set: the key \"a.b\" in run cannot be used: keys are letters, digits, '-' and '_'");
  EXPECT_EQ(load_error("[run]\nstart = [2024-01-01]\n"),
            "recipes/x.toml:2: run.start[0] is a date or time, which no option is: write a string "
            "in quotes");
}

TEST_F(RecipeLoad, SetsThatCannotBeUsed) {
  EXPECT_EQ(load_error("", {"run.ranks"}),
            "--set run.ranks: there is no '=': write --set KEY=VALUE");
  EXPECT_EQ(load_error("", {"=3"}), "--set =3: the key is empty: write --set KEY=VALUE");
  EXPECT_EQ(load_error("", {"run..ranks=3"}),
            "--set run..ranks=3: \"run..ranks\" is no key: write names of letters, digits, '-' and "
            "'_', joined by dots");
  EXPECT_THAT(load_error("", {"run.=3"}), StartsWith("--set run.=3: \"run.\" is no key"));
  EXPECT_THAT(load_error("", {".run=3"}), StartsWith("--set .run=3: \".run\" is no key"));
  EXPECT_THAT(load_error("", {"state[0].plugin=3"}), HasSubstr("\"state[0].plugin\" is no key"));
  EXPECT_EQ(load_error("[run]\nranks = 2\n", {"run.ranks.x=1"}),
            "--set run.ranks.x=1: run.ranks is an integer (recipes/x.toml:2), not a table, and has "
            "no keys");
  EXPECT_EQ(load_error("[[state]]\nplugin = \"a\"\n", {"state.plugin=b"}),
            "--set state.plugin=b: state is an array (recipes/x.toml:1), not a table, and has no "
            "keys");
  EXPECT_EQ(load_error("", {"a=\xff"}), "--set a=\\xFF: the value is no UTF-8 text");
}

TEST_F(RecipeLoad, NumbersThatDoNotFitAreNotTakenForText) {
  const auto error = [](const std::string& value) { return load_error("", {"seed=" + value}); };
  EXPECT_EQ(error("9223372036854775808"),
            "--set seed=9223372036854775808: the number does not fit into 64 bits; write a text of "
            "digits in double quotes");
  EXPECT_THAT(error("-9223372036854775809"), HasSubstr("does not fit into 64 bits"));
  EXPECT_THAT(error("+99999999999999999999"), HasSubstr("does not fit into 64 bits"));
  EXPECT_THAT(error("1e999"), HasSubstr("does not fit into 64 bits"));
  EXPECT_EQ(load_text("", {"seed=9223372036854775807"}).section("").integer("seed"),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(load_text("", {"a=\"99999999999999999999\""}).section("").text("a"),
            "99999999999999999999");
  EXPECT_EQ(load_text("", {"a=99999999999999999999x"}).section("").text("a"),
            "99999999999999999999x");
}

TEST_F(RecipeLoad, OptionBeatsEverySetAndKeepsItsName) {
  write("recipes/x.toml", "run.ranks = 1\n");
  Sources sources{"recipes/x.toml", std::nullopt, {"run.ranks=2"}, {{"--ranks", "run.ranks=3"}}};
  const Section run = Recipe::load(sources).section("run");
  EXPECT_EQ(run.integer("ranks"), 3);
  EXPECT_EQ(error_of([&] { run.reject("ranks", "is too many"); }),
            "--ranks: run.ranks = 3 is too many");
}

TEST_F(RecipeLoad, NameIsOneFileName) {
  const auto error = [](const std::string& name) { return load_error("name = " + name); };
  EXPECT_EQ(
      error("\"../../x\""),
      "recipes/x.toml:1: name = \"../../x\" must be one file name everywhere, so without '/'");
  EXPECT_EQ(error("\"\""), "recipes/x.toml:1: name = \"\" must not be empty");
  EXPECT_EQ(error("\"..\""), "recipes/x.toml:1: name = \"..\" must not begin or end with a dot");
  EXPECT_EQ(error("\"a\\u0000b\""),
            "recipes/x.toml:1: name = \"a\\u0000b\" must not hold \\u0000, which does not show");
  EXPECT_EQ(load_error("", {"name=a/b"}),
            "--set: name = \"a/b\" must be one file name everywhere, so without '/'");
  write("recipes/.toml", "");
  EXPECT_EQ(error_of([] {
              Recipe::load({"recipes/.toml", std::nullopt, {}});
            }),
            "recipes/.toml: name = \".toml\" (the default) must not begin or end with a dot");
}

TEST_F(RecipeLoad, LinkThatLeadsToItself) {
  std::filesystem::create_symlink("loop.toml", "loop.toml");
  EXPECT_EQ(error_of([] {
              Recipe::load({"loop.toml", std::nullopt, {}});
            }),
            "loop.toml: cannot be read: Too many levels of symbolic links");
  EXPECT_EQ(load_error("config = \"../loop.toml\"\n"),
            "loop.toml: cannot be read: Too many levels of symbolic links");
}

TEST_F(RecipeLoad, ConfigThatIsNoPath) {
  EXPECT_EQ(load_error("config = \"\"\n"), "recipes/x.toml:1: config = \"\" must not be empty");
  EXPECT_EQ(load_error("config = \"a\\u0000\"\n"),
            "recipes/x.toml:1: config = \"a\\u0000\" must not hold \\u0000, which does not show");
}

TEST_F(RecipeLoad, FileOfMegabytes) {
  EXPECT_EQ(load_error(std::string((1 << 20) + 1, '#')),
            "recipes/x.toml: has more than 1048576 bytes, but a recipe or config was expected");
  EXPECT_EQ(load_error(std::string(1 << 20, '#')), "no error");
}

TEST_F(RecipeLoad, NestedSoDeepThatTheStackWouldEnd) {
  const auto repeated = [](const std::string& part, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += part;
    return text;
  };
  const std::string sentence =
      ": more than 32 brackets or parts of a key are nested here: write it flatter";
  EXPECT_EQ(load_error("\n" + repeated("a.", 16000) + "a = 1\n"), "recipes/x.toml:2" + sentence);
  EXPECT_EQ(load_error("[" + repeated("a.", 16000) + "a]\n"), "recipes/x.toml:1" + sentence);
  EXPECT_EQ(load_error("a = " + repeated("[", 16000)), "recipes/x.toml:1" + sentence);
  EXPECT_EQ(load_error("", {"a=" + repeated("{a=", 16000)}), "--set a" + sentence);
  EXPECT_THAT(load_error("", {repeated("a.", 16000) + "a=1"}),
              HasSubstr("the key has more than 32 parts"));
  EXPECT_EQ(load_error(repeated("a.", 31) + "a = 1\n"), "no error");
}

TEST_F(RecipeLoad, LongAndUnprintableTextIsShownShort) {
  const std::string most(198, 'x');
  EXPECT_EQ(load_error("name = \"" + std::string(5000, 'x') + "\"\n"),
            "recipes/x.toml:1: name = \"" + most +
                "x... (5,002 bytes) must have at most 100 bytes and has 5000");
  const Recipe recipe =
      load_text("name = \"x\"\nb = \"\\u001b[31m\\u202e\"\n" + std::string(5000, 'k') + " = 1\n");
  EXPECT_EQ(error_of([&] { recipe.reject_unread(); }),
            "recipes/x.toml:2: b = \"\\u001B[31m\\u202E\" is no known key at the top of the file: "
            "known here: name");
  recipe.section("").text("b");
  EXPECT_EQ(
      error_of([&] { recipe.reject_unread(); }),
      "recipes/x.toml:3: " + std::string(200, 'k') +
          "... (5,000 bytes) = 1 is no known key at the top of the file: known here: b, name");
}

TEST_F(RecipeLoad, SectionsOfAnotherShape) {
  const Recipe recipe = load_text("run = 3\nlist = [1]\nnone = []\n[task]\n[[state]]\n");
  EXPECT_EQ(error_of([&] { recipe.section("run"); }),
            "recipes/x.toml:1: run is an integer, but a table was expected: write [run]");
  EXPECT_EQ(error_of([&] { recipe.section("run.inner"); }),
            "recipes/x.toml:1: run is an integer, but a table was expected: write [run]");
  EXPECT_EQ(error_of([&] { recipe.section("").child("run"); }),
            "recipes/x.toml:1: run is an integer, but a table was expected: write [run]");
  EXPECT_EQ(error_of([&] { recipe.section("state"); }),
            "recipes/x.toml:5: [[state]] is an array of tables, but one table was expected: write "
            "[state]");
  EXPECT_EQ(error_of([&] { recipe.sections("task"); }),
            "recipes/x.toml:4: task is a table, but an array of tables was expected: write "
            "[[task]]");
  EXPECT_EQ(error_of([&] { recipe.sections("list"); }),
            "recipes/x.toml:2: list is an array, but an array of tables was expected: write "
            "[[list]]");
  EXPECT_TRUE(recipe.sections("none").empty());
  EXPECT_TRUE(recipe.sections("absent").empty());
}

}  // namespace
}  // namespace tally::recipe
