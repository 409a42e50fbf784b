#include "plugin/hook_factory.h"

#include "recipe_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

namespace tally::plugin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::StartsWith;
using ::testing::Throws;

const std::filesystem::path kShipped = TALLY_BINARY_FOLDER "/lib/tally/plugins";
const std::filesystem::path kFixtures = TALLY_BINARY_FOLDER "/tests/plugins";

class HookFactoryTest : public ::testing::Test {
 protected:
  /// The only microbatch of the plan of `window`: what the probe saw.
  static Microbatch probe(const Hooked<Sampler>& sampler, int64_t window) {
    return sampler.call([&](Sampler& hook) { return hook.plan(window)->shards.at(0).at(0); });
  }

  Hooked<Sampler> sampler(const std::string& recipe) {
    return factory_.create<Sampler>(folder_.recipe(recipe).section("sampler"));
  }

  TestFolder folder_;
  HookFactory factory_{{kFixtures, kShipped}, /*seed=*/42};
};

TEST_F(HookFactoryTest, MakesTheOnlyHookOfItsKind) {
  const recipe::Recipe recipe = folder_.recipe("[loss_reducer]\nplugin = \"token_mean\"\n");
  const auto reducer = factory_.create<LossReducer>(recipe.section("loss_reducer"));
  EXPECT_EQ(reducer.identity().text(), "loss_reducer \"token_mean\" (plugin token_mean 0.1.0)");
  const auto scales = reducer.call([](LossReducer& hook) {
    return hook.scale({{.name = "t", .unit = "token"}}, {{.global = 48, .local = 12}},
                      {.world = 2, .divisor = 2});
  });
  EXPECT_THAT(scales, ElementsAre(2.0 / 48.0));
  recipe.reject_unread();
}

TEST_F(HookFactoryTest, MakesHooksOfOtherKinds) {
  const recipe::Recipe recipe = folder_.recipe(
      "[sync_policy]\nplugin = \"no_sync\"\n[[state]]\nplugin = \"sampler_state\"\n");
  const auto policy = factory_.create<SyncPolicy>(recipe.section("sync_policy"));
  EXPECT_EQ(policy.call([](SyncPolicy& hook) { return hook.divisor(3); }), 3);
  const auto state = factory_.create<StateProvider>(recipe.sections("state").at(0));
  EXPECT_EQ(state.call([](StateProvider& hook) { return hook.state_id(); }), "sampler_state/1");
}

TEST_F(HookFactoryTest, ChoosesAmongSeveralHooksByTheKeyHook) {
  const recipe::Recipe recipe =
      folder_.recipe("[loss_reducer]\nplugin = \"two_reducers\"\nhook = \"two\"\n");
  const auto reducer = factory_.create<LossReducer>(recipe.section("loss_reducer"));
  EXPECT_EQ(reducer.identity().hook, "two");
  EXPECT_THAT(reducer.call([](LossReducer& hook) { return hook.scale({{}}, {{}}, {}); }),
              ElementsAre(2.0));
}

TEST_F(HookFactoryTest, ChoosesAmongSeveralHooksThatOfThePluginsName) {
  EXPECT_EQ(sampler("[sampler]\nplugin = \"probe\"\n").identity().hook, "probe");
}

TEST_F(HookFactoryTest, GivesTheHookItsSectionAndTheSeed) {
  const auto hook = sampler("[sampler]\nplugin = \"probe\"\nstart = 5\n");
  const Microbatch seen = probe(hook, 0);
  EXPECT_EQ(seen.at(0), 42);
  EXPECT_EQ(seen.at(2), 5);
}

TEST_F(HookFactoryTest, AFallbackBecomesPartOfTheResolvedRecipe) {
  const recipe::Recipe recipe = folder_.recipe("[sampler]\nplugin = \"probe\"\n");
  EXPECT_EQ(probe(factory_.create<Sampler>(recipe.section("sampler")), 0).at(2), 7);
  EXPECT_THAT(recipe.resolved(), HasSubstr("start = 7"));
}

TEST_F(HookFactoryTest, StreamSeedDependsOnSeedSectionPurposeAndIndexAlone) {
  const std::string text =
      "[sampler]\nplugin = \"probe\"\nhook = \"nested\"\n[sampler.inner]\nplugin = \"probe\"\n"
      "hook = \"probe\"\n";
  const recipe::Recipe recipe = folder_.recipe(text);
  const auto stream = [&](int64_t seed, std::string_view section, int64_t window) {
    HookFactory factory({kFixtures}, seed);
    return probe(factory.create<Sampler>(recipe.section(section)), window).at(1);
  };
  const int64_t value = stream(42, "sampler.inner", 3);
  // python3: int.from_bytes(hashlib.sha256(struct.pack("<qq13sq5sq", 42, 13, b"sampler.inner", 5,
  // b"order", 3)).digest()[:8], "little", signed=True)
  EXPECT_EQ(value, int64_t{3523799035044123035});
  EXPECT_EQ(stream(42, "sampler", 3), value) << "a nested hook draws from its own section";
  EXPECT_NE(stream(43, "sampler.inner", 3), value);
  EXPECT_NE(stream(42, "sampler.inner", 4), value);
  const recipe::Recipe other = folder_.recipe("[sampler]\nplugin = \"probe\"\n");
  HookFactory factory({kFixtures}, 42);
  EXPECT_NE(probe(factory.create<Sampler>(other.section("sampler")), 3).at(1), value);
}

TEST_F(HookFactoryTest, AHookMakesHooksInsideIt) {
  const auto hook = sampler(
      "[sampler]\nplugin = \"probe\"\nhook = \"nested\"\n"
      "[sampler.inner]\nplugin = \"probe\"\nstart = 9\n");
  EXPECT_EQ(hook.identity().hook, "nested");
  EXPECT_EQ(probe(hook, 0).at(2), 9);
  EXPECT_THAT([&] { sampler("[sampler]\nplugin = \"probe\"\nhook = \"nested\"\n"); },
              Throws<ConfigError>(Property(
                  &ConfigError::what,
                  HasSubstr("[sampler.inner] names no plugin; write plugin = \"NAME\" in it"))));
}

TEST_F(HookFactoryTest, ALogLineStartsWithTheHook) {
  ::testing::internal::CaptureStderr();
  sampler("[sampler]\nplugin = \"probe\"\n");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("warning: sampler \"probe\": made\n"));
  EXPECT_THAT(log, HasSubstr("info: sampler \"probe\": gone\n"));
}

TEST_F(HookFactoryTest, AContextOutlivesItsHookAndTheFactory) {
  auto factory = std::make_unique<HookFactory>(std::vector{kFixtures}, 1);
  const recipe::Recipe recipe = folder_.recipe(
      "[a]\nplugin = \"probe\"\nhook = \"nested\"\n[a.inner]\nplugin = \"probe\"\nstart = 1\n"
      "[b]\nplugin = \"probe\"\nstart = 2\n");
  auto a = factory->create<Sampler>(recipe.section("a"));
  auto b = factory->create<Sampler>(recipe.section("b"));
  factory.reset();
  ::testing::internal::CaptureStderr();
  a = std::move(b);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("gone"));
  EXPECT_EQ(probe(a, 0).at(2), 2);
}

TEST_F(HookFactoryTest, ARejectedOptionIsTheRecipesError) {
  EXPECT_THAT([&] { sampler("[sampler]\nplugin = \"probe\"\nstart = 101\n"); },
              Throws<ConfigError>(Property(
                  &ConfigError::what,
                  AllOf(HasSubstr("test.toml:3: sampler.start = 101 must lie between 0 and 100"),
                        Not(HasSubstr("failed"))))));
}

TEST_F(HookFactoryTest, ListsThePluginsOfItsHooksInOrderOfFirstUse) {
  sampler("[sampler]\nplugin = \"probe\"\n");
  const recipe::Recipe recipe = folder_.recipe("[loss_reducer]\nplugin = \"token_mean\"\n");
  factory_.create<LossReducer>(recipe.section("loss_reducer"));
  sampler("[sampler]\nplugin = \"probe\"\n");
  const std::vector<LoadedPlugin> plugins = factory_.plugins();
  ASSERT_EQ(plugins.size(), 2U);
  EXPECT_EQ(plugins[0].name, "probe");
  EXPECT_EQ(plugins[0].version, "1.2.3");
  EXPECT_EQ(plugins[1].name, "token_mean");
  EXPECT_EQ(plugins[1].file, std::filesystem::canonical(kShipped / "token_mean.so"));
  std::ifstream stream(kShipped / "token_mean.so", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(plugins[1].digest, sha256(bytes));
}

TEST_F(HookFactoryTest, AHookThatThrowsIsNamedWithThePlace) {
  const auto hook = sampler("[sampler]\nplugin = \"probe\"\n");
  set_place("at window 812, rank 3");
  EXPECT_THAT([&] { probe(hook, -1); },
              Throws<PluginError>(Property(
                  &PluginError::what,
                  StartsWith("sampler \"probe\" (plugin probe 1.2.3) failed at window 812, rank 3: "
                             "there is no window before the first"))));
  set_place("");
  EXPECT_THAT([&] { hook.call([](Sampler& sampler) { sampler.prepare({}); }); },
              Throws<DataError>(Property(
                  &DataError::what,
                  StartsWith("sampler \"probe\" (plugin probe 1.2.3) failed: the split"))));
}

}  // namespace
}  // namespace tally::plugin
