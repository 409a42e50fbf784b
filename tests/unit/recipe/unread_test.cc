#include "recipe/unread.h"

#include "recipe_files.h"

namespace tally::recipe {
namespace {

class Unread : public RecipeFiles {
 protected:
  /// Reads what a run would read.
  static std::string unread_error(const std::string& text,
                                  const std::vector<std::string>& sets = {}) {
    const Recipe recipe = load_text(text, sets);
    recipe.section("").integer("seed", 1);
    recipe.section("run").integer("ranks", 1);
    const Section sampler = recipe.section("sampler");
    sampler.integer("shards", 2);
    sampler.integer("batch_size", 8);
    sampler.child("inner").boolean("shuffle", false);
    for (const Section& state : recipe.sections("state")) state.text("plugin", "");
    return error_of([&] { recipe.reject_unread(); });
  }
};

TEST_F(Unread, EveryKeyKnown) {
  EXPECT_EQ(unread_error("name = \"x\"\nseed = 2\n[run]\nranks = 2\n[sampler]\n[sampler.inner]\n"
                         "shuffle = true\n[[state]]\nplugin = \"p\"\n",
                         {"sampler.shards=3"}),
            "no error");
}

TEST_F(Unread, NearestKeyOfTheSection) {
  EXPECT_EQ(unread_error("[sampler]\nshards = 2\nbach_size = 3\n"),
            "recipes/x.toml:3: sampler.bach_size = 3 is no known key of [sampler]: did you mean "
            "\"batch_size\"?");
  EXPECT_EQ(unread_error("sede = 2\n"),
            "recipes/x.toml:1: sede = 2 is no known key at the top of the file: did you mean "
            "\"seed\"?");
  EXPECT_EQ(unread_error("[sampler.inner]\nshufle = 1\n"),
            "recipes/x.toml:2: sampler.inner.shufle = 1 is no known key of [sampler.inner]: did "
            "you mean \"shuffle\"?");
  EXPECT_EQ(unread_error("[[state]]\n[[state]]\nplugins = 1\n"),
            "recipes/x.toml:3: state[1].plugins = 1 is no known key of [[state]]: did you mean "
            "\"plugin\"?");
  EXPECT_EQ(unread_error("", {"run.rank=two"}),
            "--set: run.rank = \"two\" is no known key of [run]: did you mean \"ranks\"?");
}

TEST_F(Unread, NearestSection) {
  EXPECT_EQ(unread_error("[smapler]\nshards = 2\n"),
            "recipes/x.toml:1: [smapler] is no known section: did you mean [sampler]?");
  EXPECT_EQ(unread_error("[sampler.iner]\nshuffle = true\n"),
            "recipes/x.toml:1: [sampler.iner] is no known section: did you mean [sampler.inner]?");
  EXPECT_EQ(unread_error("[[states]]\nplugin = \"p\"\n"),
            "recipes/x.toml:1: [[states]] is no known section: did you mean \"state\"?");
}

TEST_F(Unread, KeyOfAnotherSection) {
  EXPECT_EQ(unread_error("[run]\nseed = 2\n"),
            "recipes/x.toml:2: run.seed = 2 is no known key of [run]: the key of that name belongs "
            "to the top of the file");
  EXPECT_EQ(unread_error("[run]\nbatch_size = 2\n"),
            "recipes/x.toml:2: run.batch_size = 2 is no known key of [run]: the key of that name "
            "belongs into [sampler]");
  EXPECT_EQ(unread_error("[inner]\nshuffle = true\n"),
            "recipes/x.toml:1: [inner] is no known section: the key of that name belongs into "
            "[sampler]");
}

TEST_F(Unread, NothingNearListsWhatIsKnown) {
  EXPECT_EQ(unread_error("[sampler]\ncolour = \"red\"\n"),
            "recipes/x.toml:2: sampler.colour = \"red\" is no known key of [sampler]: known here: "
            "batch_size, inner, shards");
  EXPECT_EQ(unread_error("[colour]\n"),
            "recipes/x.toml:1: [colour] is no known section: known here: name, run, sampler, seed, "
            "state");
}

TEST_F(Unread, SetIsReportedBeforeTheRecipeAndTheRecipeBeforeItsConfig) {
  write("configs/c.toml", "aaa = 1\n");
  const std::string text = "config = \"../configs/c.toml\"\nzzz = 1\nbbb = 1\n";
  const auto begin = [](const std::string& sentence) {
    return sentence.substr(0, sentence.find(" is"));
  };
  EXPECT_EQ(begin(unread_error(text, {"yyy=1"})), "--set: yyy = 1");
  EXPECT_EQ(begin(unread_error(text)), "recipes/x.toml:2: zzz = 1");
  EXPECT_EQ(begin(unread_error("config = \"../configs/c.toml\"\n")), "configs/c.toml:1: aaa = 1");
}

}  // namespace
}  // namespace tally::recipe
