#include "run/settings.h"

#include "run/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>
#include <unistd.h>

#include <fstream>

namespace tally::run {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

recipe::Recipe recipe_with(std::vector<std::string> sets) {
  const auto file = std::filesystem::path(::testing::TempDir()) /
                    fmt::format("tally-settings-{}.toml", ::getpid());
  std::ofstream(file) << "name = \"small\"\n[window]\nshards = 4\n"
                         "[optimizer]\nlearning_rate = 0.5\n";
  recipe::Recipe recipe =
      recipe::Recipe::load({.recipe = file, .config = {}, .sets = std::move(sets)});
  std::filesystem::remove(file);
  return recipe;
}

TEST(SettingsTest, HasTheDocumentedDefaults) {
  const Settings settings = read_settings(recipe_with({}));
  EXPECT_EQ(settings.name, "small");
  EXPECT_EQ(settings.seed, 1);
  EXPECT_FALSE(settings.keyed_rng);
  EXPECT_EQ(settings.ranks, 1);
  EXPECT_EQ(settings.timeout, std::chrono::seconds(300));
  EXPECT_EQ(settings.threads, 1);
  EXPECT_EQ(settings.device, "auto");
  EXPECT_EQ(settings.backend, "auto");
  EXPECT_FALSE(settings.allow_idle_ranks);
  EXPECT_TRUE(settings.deterministic);
  EXPECT_EQ(settings.data_folder, "data");
  EXPECT_EQ(settings.checkpoint_folder, "artifacts/checkpoints");
  EXPECT_EQ(settings.updates, 100);
  EXPECT_EQ(settings.stop_at, 100) << "the whole run";
  EXPECT_FALSE(settings.skip_empty_windows);
  EXPECT_EQ(settings.clip_norm, 0.0);
  EXPECT_EQ(settings.bucket_bytes, int64_t{25} << 20);
  EXPECT_EQ(settings.shards, 4);
  EXPECT_EQ(settings.accumulation, 1);
  EXPECT_EQ(settings.batch_size, 1);
}

TEST(SettingsTest, ReadsWhatIsWritten) {
  const Settings settings = read_settings(recipe_with(
      {"rng=keyed", "seed=7", "run.ranks=3", "run.timeout=0.25", "run.threads=2", "run.device=cpu",
       "run.deterministic=false", "run.backend=gloo", "run.bucket_bytes=1024", "train.updates=9",
       "train.stop_at=4", "train.on_empty_window=skip", "train.clip_norm=2",
       "data.folder=elsewhere", "checkpoint.folder=kept"}));
  EXPECT_TRUE(settings.keyed_rng);
  EXPECT_EQ(settings.seed, 7);
  EXPECT_EQ(settings.ranks, 3);
  EXPECT_EQ(settings.timeout, std::chrono::milliseconds(250));
  EXPECT_EQ(settings.threads, 2);
  EXPECT_EQ(settings.device, "cpu");
  EXPECT_EQ(settings.backend, "gloo");
  EXPECT_FALSE(settings.deterministic);
  EXPECT_EQ(settings.bucket_bytes, 1024);
  EXPECT_EQ(settings.updates, 9);
  EXPECT_EQ(settings.stop_at, 4);
  EXPECT_TRUE(settings.skip_empty_windows);
  EXPECT_EQ(settings.clip_norm, 2.0);
  EXPECT_EQ(settings.data_folder, "elsewhere");
  EXPECT_EQ(settings.checkpoint_folder, "kept");
}

TEST(SettingsTest, EachValueThatCannotBeUsedIsRejectedWithItsPlace) {
  for (const auto& [set, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"seed=-1", "seed = -1 must lie between 0 and"},
           {"rng=random", "rng = \"random\""},
           {"run.ranks=0", "run.ranks = 0 must lie between 1 and 1048576"},
           {"run.ranks=-2", "run.ranks = -2 must lie between 1 and 1048576"},
           {"run.ranks=5", "run.ranks = 5 must be at most window.shards = 4"},
           {"run.timeout=0", "run.timeout = 0 must be at least 0.001 and at most 604800 seconds"},
           {"run.timeout=-1", "must be at least 0.001"},
           {"run.timeout=1e-300", "run.timeout = 1e-300 must be at least 0.001"},
           {"run.timeout=1e9", "at most 604800 seconds"},
           {"run.timeout=nan", "run.timeout = nan is a float, but a finite number"},
           {"checkpoint.grace_seconds=0", "checkpoint.grace_seconds = 0 must be at least 0.001"},
           {"checkpoint.folder=\"\"", "--set: checkpoint.folder = \"\" must not be empty"},
           {"checkpoint.folder=\"a\\u0000\"", "must not hold \\u0000, which does not show"},
           {"checkpoint.at=[3, 0]",
            "checkpoint.at = [3, 0] must hold numbers of windows, each at least 1"},
           {"checkpoint.at=[-1]", "each at least 1"},
           {"data.folder=\"\"", "--set: data.folder = \"\" must not be empty"},
           {"run.threads=0", "run.threads = 0 must lie between 1 and 1024"},
           {"run.device=tpu", "run.device = \"tpu\""},
           {"run.backend=mpi", "run.backend = \"mpi\""},
           {"run.bucket_bytes=0", "run.bucket_bytes = 0 must lie between 1 and"},
           {"run.allow_idle_ranks=1", "run.allow_idle_ranks"},
           {"train.updates=0", "train.updates = 0 must lie between 1 and"},
           {"train.stop_at=0", "train.stop_at = 0 must lie between 1 and"},
           {"train.on_empty_window=ignore", "train.on_empty_window = \"ignore\""},
           {"train.clip_norm=-1", "train.clip_norm = -1"},
           {"train.clip_norm=nan", "train.clip_norm = nan is a float, but a finite number"},
           {"train.clip_norm=inf", "train.clip_norm = inf is a float, but a finite number"},
           {"window.shards=0", "window.shards = 0 must lie between 1 and 1048576"},
           {"data.folder=3", "data.folder"}}) {
    EXPECT_THAT([set = set] { read_settings(recipe_with({set})); },
                ThrowsMessage<ConfigError>(HasSubstr(sentence)))
        << set;
  }
}

TEST(SettingsTest, NamesOfTallysOwnFoldersAreTaken) {
  for (const char* name : {"gradients", "resume-check", "compare.json"}) {
    EXPECT_THAT([&] { read_settings(recipe_with({fmt::format("name={}", name)})); },
                ThrowsMessage<ConfigError>(HasSubstr(fmt::format(
                    "--set: name = \"{}\" is taken: outputs/{} is tally's own", name, name))));
  }
  EXPECT_EQ(read_settings(recipe_with({"name=gradients2"})).name, "gradients2");
}

TEST(SettingsTest, IdleRanksMustBeAskedFor) {
  EXPECT_EQ(read_settings(recipe_with({"run.ranks=5", "run.allow_idle_ranks=true"})).ranks, 5);
}

OptimizerOptions optimizer_with(std::vector<std::string> sets) {
  return read_optimizer(recipe_with(std::move(sets)).section("optimizer"));
}

TEST(OptimizerOptionsTest, ReadsTheOptionsOfTheOneThatIsNamed) {
  const OptimizerOptions sgd = optimizer_with({"optimizer.momentum=0.9"});
  EXPECT_EQ(sgd.name, "sgd");
  EXPECT_EQ(sgd.learning_rate, 0.5);
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_EQ(sgd.weight_decay, 0.0);
  EXPECT_EQ(optimizer_with({"optimizer.weight_decay=2"}).weight_decay, 2.0) << "times 0.5 is 1";
  const OptimizerOptions adamw = optimizer_with(
      {"optimizer.name=adamw", "optimizer.beta1=0.8", "optimizer.weight_decay=0.25"});
  EXPECT_EQ(adamw.name, "adamw");
  EXPECT_EQ(adamw.beta1, 0.8);
  EXPECT_EQ(adamw.beta2, 0.999);
  EXPECT_EQ(adamw.epsilon, 1e-8);
  EXPECT_EQ(adamw.weight_decay, 0.25);
}

TEST(OptimizerOptionsTest, EachValueThatCannotBeUsedIsRejected) {
  for (const auto& [set, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"optimizer.name=lion", "optimizer.name = \"lion\""},
           {"optimizer.learning_rate=-1", "must be at least 0"},
           {"optimizer.learning_rate=nan", "but a finite number"},
           {"optimizer.learning_rate=inf", "but a finite number"},
           {"optimizer.weight_decay=inf", "but a finite number"},
           {"optimizer.weight_decay=2.5",
            "optimizer.weight_decay = 2.5 times learning_rate = 0.5 must be at most 1"},
           {"optimizer.weight_decay=1e308", "must be at most 1"},
           {"optimizer.weight_decay=-0.5", "must be at least 0"},
           {"optimizer.momentum=1", "must be less than 1"},
           {"optimizer.momentum=-1", "must be at least 0"}}) {
    EXPECT_THAT([set = set] { optimizer_with({set}); },
                ThrowsMessage<ConfigError>(HasSubstr(sentence)))
        << set;
  }
  for (const auto& [set, sentence] : std::vector<std::pair<std::string, std::string>>{
           {"optimizer.beta1=1", "optimizer.beta1 = 1"},
           {"optimizer.beta2=1.5", "optimizer.beta2 = 1.5"},
           {"optimizer.epsilon=inf", "but a finite number"},
           {"optimizer.epsilon=-1", "optimizer.epsilon = -1"}}) {
    EXPECT_THAT(
        [set = set] {
          optimizer_with({"optimizer.name=adamw", set});
        },
        ThrowsMessage<ConfigError>(HasSubstr(sentence)))
        << set;
  }
}

}  // namespace
}  // namespace tally::run
