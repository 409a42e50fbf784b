#include "recipe/listing.h"

#include "recipe_files.h"

namespace tally::recipe {
namespace {

class Listing : public RecipeFiles {
 protected:
  static Recipe example() {
    write("configs/c.toml", "[run]\nranks = 2\nsizes = [1, 2]\n[empty]\n");
    Recipe recipe = load_text(
        "config = \"../configs/c.toml\"\nname = \"x\"\n[[state]]\nplugin = \"p\"\n[[state]]\n"
        "plugin = \"q\"\n",
        {"run.deep.x=inf"});
    recipe.section("run").boolean("idle", false);
    return recipe;
  }
};

TEST_F(Listing, LinesAreInColumns) {
  EXPECT_EQ(example().with_origins(),
            "name            = \"x\"      # recipes/x.toml:2\n"
            "state[0].plugin = \"p\"      # recipes/x.toml:4\n"
            "state[1].plugin = \"q\"      # recipes/x.toml:6\n"
            "run.idle        = false    # default\n"
            "run.ranks       = 2        # configs/c.toml:2\n"
            "run.sizes       = [1, 2]   # configs/c.toml:3\n"
            "run.deep.x      = inf      # --set\n");
}

TEST_F(Listing, JsonKeepsOrderTypesAndOrigins) {
  EXPECT_EQ(example().with_origins_json(), R"([
  {
    "key": "name",
    "value": "x",
    "origin": "recipes/x.toml:2"
  },
  {
    "key": "state[0].plugin",
    "value": "p",
    "origin": "recipes/x.toml:4"
  },
  {
    "key": "state[1].plugin",
    "value": "q",
    "origin": "recipes/x.toml:6"
  },
  {
    "key": "run.idle",
    "value": false,
    "origin": "default"
  },
  {
    "key": "run.ranks",
    "value": 2,
    "origin": "configs/c.toml:2"
  },
  {
    "key": "run.sizes",
    "value": [
      1,
      2
    ],
    "origin": "configs/c.toml:3"
  },
  {
    "key": "run.deep.x",
    "value": "inf",
    "origin": "--set"
  }
])");
}

}  // namespace
}  // namespace tally::recipe
