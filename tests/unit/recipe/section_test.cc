#include "recipe/section.h"

#include "recipe_files.h"

#include <optional>

namespace tally::recipe {
namespace {

class SectionRead : public RecipeFiles {
 protected:
  SectionRead() = default;

  /// The section [s] of a recipe; its values begin in line 2.
  static Section section(const std::string& values) {
    return load_text("[s]\n" + values).section("s");
  }
};

TEST_F(SectionRead, ValuesOfEachType) {
  const Section s = section(
      "integer = -7\nfloat = 0.1\nwhole = 3\nboolean = false\ntext = 'a\"b'\nintegers = [1, 2]\n"
      "empty = []\n");
  EXPECT_EQ(s.integer("integer"), -7);
  EXPECT_EQ(s.number("float"), 0.1);
  EXPECT_EQ(s.number("whole"), 3.0);
  EXPECT_EQ(s.boolean("boolean"), false);
  EXPECT_EQ(s.text("text"), "a\"b");
  EXPECT_EQ(s.integers("integers"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(s.integers("empty"), std::vector<int64_t>{});
  EXPECT_TRUE(s.has("integer"));
  EXPECT_FALSE(s.has("absent"));
}

TEST_F(SectionRead, WrittenValueBeatsFallback) {
  const Section s = section("a = 1\nb = 0.5\nc = true\nd = \"x\"\ne = [1]\n");
  EXPECT_EQ(s.integer("a", 9), 1);
  EXPECT_EQ(s.number("b", 9.0), 0.5);
  EXPECT_EQ(s.boolean("c", false), true);
  EXPECT_EQ(s.text("d", "y"), "x");
  EXPECT_EQ(s.integers("e", std::vector<int64_t>{9}), (std::vector<int64_t>{1}));
}

TEST_F(SectionRead, WrongTypeNamesFileLineValueAndBothTypes) {
  const Section s = section(
      "text = \"two\"\nfloat = 2.0\nboolean = true\ninteger = 1\nmixed = [1, 0.5]\n"
      "huge = 9007199254740993\ntable = {}\ntables = [{a = 1}]\n");
  const auto integer = [&](const char* key) { return error_of([&] { s.integer(key); }); };
  EXPECT_EQ(integer("text"),
            "recipes/x.toml:2: s.text = \"two\" is a string, but an integer was expected");
  EXPECT_EQ(integer("float"),
            "recipes/x.toml:3: s.float = 2.0 is a float, but an integer was expected");
  EXPECT_EQ(integer("boolean"),
            "recipes/x.toml:4: s.boolean = true is a boolean, but an integer was expected");
  EXPECT_EQ(integer("table"), "recipes/x.toml:8: s.table is a table, but an integer was expected");
  EXPECT_EQ(integer("tables"),
            "recipes/x.toml:9: s.tables is an array, but an integer was expected");
  EXPECT_EQ(error_of([&] { s.number("text"); }),
            "recipes/x.toml:2: s.text = \"two\" is a string, but a finite number that a double "
            "holds exactly was expected");
  EXPECT_EQ(error_of([&] { s.number("huge"); }),
            "recipes/x.toml:7: s.huge = 9007199254740993 is an integer, but a finite number that a "
            "double holds exactly was expected");
  EXPECT_EQ(error_of([&] { s.boolean("integer"); }),
            "recipes/x.toml:5: s.integer = 1 is an integer, but true or false was expected");
  EXPECT_EQ(error_of([&] { s.text("integer"); }),
            "recipes/x.toml:5: s.integer = 1 is an integer, but a string was expected");
  EXPECT_EQ(error_of([&] { s.integers("mixed"); }),
            "recipes/x.toml:6: s.mixed = [1, 0.5] is an array, but an array of integers was "
            "expected");
  EXPECT_EQ(error_of([&] { s.integers("integer"); }),
            "recipes/x.toml:5: s.integer = 1 is an integer, but an array of integers was expected");
}

TEST_F(SectionRead, NumbersAreFinite) {
  const Section s = section("a = inf\nb = -inf\nc = nan\n");
  EXPECT_EQ(error_of([&] { s.number("a"); }),
            "recipes/x.toml:2: s.a = inf is a float, but a finite number that a double holds "
            "exactly was expected");
  EXPECT_NE(error_of([&] { s.number("b"); }), "no error");
  EXPECT_NE(error_of([&] { s.number("c", 1.0); }), "no error");
}

TEST_F(SectionRead, PathIsRelativeToTheFileThatWroteIt) {
  write("configs/c.toml", "[s]\nconfig = \"../data/c.txt\"\n");
  const Section s = load_text(
                        "config = \"../configs/c.toml\"\n[s]\nown = \"./own.txt\"\n"
                        "absolute = \"/opt/a.txt\"\nempty = \"\"\nline = \"a\\nb\"\n",
                        {"s.set=set.txt"})
                        .section("s");
  EXPECT_EQ(s.path("own"), "recipes/own.txt");
  EXPECT_EQ(s.path("config"), "data/c.txt");
  EXPECT_EQ(s.path("absolute"), "/opt/a.txt");
  EXPECT_EQ(s.path("set"), "set.txt");
  EXPECT_EQ(s.path("absent", "fallback.txt"), "fallback.txt");
  EXPECT_EQ(error_of([&] { s.path("empty"); }),
            "recipes/x.toml:5: s.empty = \"\" must not be empty");
  EXPECT_EQ(error_of([&] { s.path("line"); }),
            "recipes/x.toml:6: s.line = \"a\\nb\" must not hold \\u000A, which does not show");
}

TEST_F(SectionRead, WrongTypeFromSetAndFromAnotherFallback) {
  const Section s = load_text("", {"s.ranks=two"}).section("s");
  EXPECT_EQ(error_of([&] { s.integer("ranks"); }),
            "--set: s.ranks = \"two\" is a string, but an integer was expected");
  EXPECT_EQ(s.text("device", "auto"), "auto");
  EXPECT_EQ(error_of([&] { s.integer("device", 1); }),
            "default: s.device = \"auto\" is a string, but an integer was expected");
}

TEST_F(SectionRead, MissingKeySaysWhereToWriteIt) {
  const Recipe recipe = load_text("\n[s]\n[[state]]\n");
  EXPECT_EQ(error_of([&] { recipe.section("s").integer("shards"); }),
            "recipes/x.toml:2: s.shards is missing and has no default: write shards = INTEGER into "
            "[s], or pass --set s.shards=INTEGER");
  EXPECT_EQ(error_of([&] { recipe.section("t").text("plugin"); }),
            "recipes/x.toml: t.plugin is missing and has no default: write plugin = \"TEXT\" into "
            "[t], or pass --set t.plugin=\"TEXT\"");
  EXPECT_EQ(error_of([&] { recipe.section("").boolean("flag"); }),
            "recipes/x.toml: flag is missing and has no default: write flag = true|false at the "
            "top of the file, or pass --set flag=true|false");
  EXPECT_EQ(error_of([&] { recipe.sections("state")[0].number("rate"); }),
            "recipes/x.toml:3: state[0].rate is missing and has no default: write rate = NUMBER "
            "into [[state]]");
}

TEST_F(SectionRead, RejectNamesTheValue) {
  const Section s = section("shards = 0\ninner = {a = 1}\n");
  EXPECT_EQ(error_of([&] { s.reject("shards", "must be at least 1"); }),
            "recipes/x.toml:2: s.shards = 0 must be at least 1");
  EXPECT_EQ(error_of([&] { s.integer_in("shards", 1, 1, 64); }),
            "recipes/x.toml:2: s.shards = 0 must lie between 1 and 64");
  EXPECT_EQ(error_of([&] { s.reject("inner", "is of no use"); }),
            "recipes/x.toml:3: s.inner is of no use");
  s.integer("rate", 3);
  EXPECT_EQ(error_of([&] { s.reject("rate", "is too high"); }),
            "recipes/x.toml:1: s.rate = 3 (the default) is too high");
  EXPECT_EQ(error_of([&] { s.reject("absent", "must be given with s.shards"); }),
            "recipes/x.toml:1: s.absent, which is not given, must be given with s.shards");
}

TEST_F(SectionRead, ChoiceNamesTheChoices) {
  const Section s = section("device = \"gpu\"\nbackend = \"nccl\"\n");
  EXPECT_EQ(s.choice("backend", "auto", {"auto", "gloo", "nccl"}), "nccl");
  EXPECT_EQ(s.choice("absent", "auto", {"auto", "gloo"}), "auto");
  EXPECT_EQ(error_of([&] {
              s.choice("device", "auto", {"auto", "cpu", "cuda"});
            }),
            "recipes/x.toml:2: s.device = \"gpu\" must be \"auto\", \"cpu\" or \"cuda\"");
}

TEST_F(SectionRead, FallbackBecomesPartOfTheResolvedRecipe) {
  const Recipe recipe = load_text("name = \"n\"\n[[state]]\nplugin = \"p\"\n");
  EXPECT_EQ(recipe.section("a.b").integer("count", 3), 3);
  EXPECT_EQ(recipe.section("a.b").integer("count", 4), 3) << "the first fallback stays";
  EXPECT_EQ(recipe.section("a").integers("sizes", std::vector<int64_t>{1, 2}),
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(recipe.sections("state")[0].number("rate", 1.0), 1.0);
  EXPECT_EQ(recipe.resolved(),
            "name = \"n\"\n\n[[state]]\nplugin = \"p\"\nrate = 1.0\n\n[a]\nsizes = [1, 2]\n\n"
            "[a.b]\ncount = 3\n");
}

TEST_F(SectionRead, SectionNobodyReadsFromIsNotPartOfTheResolvedRecipe) {
  const Recipe recipe = load_text("");
  EXPECT_FALSE(recipe.section("a").has("b"));
  EXPECT_FALSE(recipe.section("a").child("c").has("d"));
  EXPECT_EQ(recipe.resolved(), "name = \"x\"\n");
}

TEST_F(SectionRead, OriginPathAndFolder) {
  write("configs/c.toml", "[data]\nplugin = \"./d.so\"\n[sampler]\nshards = 2\nplugin = \"c\"\n");
  const Recipe recipe = load_text(
      "config = \"../configs/c.toml\"\n\n[sampler]\nplugin = \"./x.so\"\n[sampler.inner]\na = 1\n"
      "[[state]]\na = 1\n[[state]]\na = 2\n",
      {"task.plugin=./y.so", "sampler.shards=4", "sampler={batch_size = 3}"});
  const Section sampler = recipe.section("sampler");
  EXPECT_EQ(sampler.integer("batch_size"), 3);
  EXPECT_EQ(sampler.origin(), "recipes/x.toml:3") << "a --set has no line to go to";
  EXPECT_EQ(sampler.folder_of("plugin"), "recipes");
  EXPECT_EQ(sampler.folder_of("shards"), ".");
  EXPECT_EQ(sampler.folder_of("absent"), ".");
  EXPECT_EQ(sampler.child("inner").path(), "sampler.inner");
  EXPECT_EQ(sampler.child("inner").origin(), "recipes/x.toml:5");
  EXPECT_EQ(sampler.child("inner").integer("a"), 1);
  EXPECT_EQ(recipe.section("data").origin(), "configs/c.toml:1");
  EXPECT_EQ(recipe.section("data").folder_of("plugin"), "configs");
  EXPECT_EQ(recipe.section("task").origin(), "recipes/x.toml");
  EXPECT_EQ(recipe.section("task").folder_of("plugin"), ".");
  EXPECT_EQ(recipe.section("absent").origin(), "recipes/x.toml");
  EXPECT_EQ(recipe.section("").origin(), "recipes/x.toml");
  EXPECT_EQ(recipe.sections("state")[1].path(), "state[1]");
  EXPECT_EQ(recipe.sections("state")[1].origin(), "recipes/x.toml:9");
}

}  // namespace
}  // namespace tally::recipe
