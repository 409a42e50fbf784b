// Each broken plugin ends in one sentence of the right type.
#include "plugin/hook_factory.h"
#include "recipe_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tally/error.h>

namespace tally::plugin {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::filesystem::path kBad = TALLY_BAD_PLUGINS;
const std::filesystem::path kShipped = TALLY_SHIPPED_PLUGINS;

class BadPluginsTest : public ::testing::Test {
 protected:
  /// Text of the E that making a sampler from `[sampler]` and `section` ends with.
  template <class E>
  std::string error(const std::string& section) {
    HookFactory factory({kBad, kShipped}, 1);
    const recipe::Recipe recipe = folder_.recipe("[sampler]\n" + section);
    try {
      factory.create<Sampler>(recipe.section("sampler"));
    } catch (const E& error) {
      return error.what();
    }
    return "no error";
  }

  std::string file(const std::string& name) const {
    return "plugin " + std::filesystem::canonical(kBad / (name + ".so")).string();
  }

  TestFolder folder_;
};

TEST_F(BadPluginsTest, NoStampIsFoundBeforeAnyCodeRuns) {
  ::testing::internal::CaptureStdout();
  EXPECT_THAT(error<PluginError>("plugin = \"bad_no_stamp\""),
              StartsWith(file("bad_no_stamp") + " carries no tally stamp"));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST_F(BadPluginsTest, NoDescriptor) {
  EXPECT_THAT(error<PluginError>("plugin = \"bad_no_descriptor\""),
              AllOf(StartsWith(file("bad_no_descriptor") + " exports no tally_plugin_v1"),
                    HasSubstr("TALLY_PLUGIN")));
}

TEST_F(BadPluginsTest, DescriptorSmallerThanOurs) {
  EXPECT_THAT(error<PluginError>("plugin = \"bad_small_descriptor\""),
              StartsWith(file("bad_small_descriptor") +
                         " has a broken descriptor: it is 32 bytes and at least 40 are needed"));
}

TEST_F(BadPluginsTest, DescriptorWithAnotherStampThanTheFile) {
  EXPECT_THAT(error<PluginError>("plugin = \"bad_descriptor_stamp\""),
              HasSubstr("its stamp is not the one in the file"));
}

TEST_F(BadPluginsTest, DescriptorWithoutHooks) {
  EXPECT_THAT(error<PluginError>("plugin = \"bad_empty_descriptor\""),
              HasSubstr("name, version or hooks are missing"));
}

TEST_F(BadPluginsTest, HookWithoutName) {
  EXPECT_THAT(error<PluginError>("plugin = \"bad_nameless_hook\""),
              HasSubstr("hook 0 has no interface, no name or no factory"));
}

TEST_F(BadPluginsTest, TwoHooksOfOneName) {
  EXPECT_THAT(error<PluginError>("plugin = \"bad_duplicate_hook\""),
              HasSubstr("two hooks of sampler/1 are named \"x\""));
}

TEST_F(BadPluginsTest, MissingSymbolIsDlerrorsSentence) {
  EXPECT_THAT(error<PluginError>("plugin = \"bad_missing_symbol\""),
              AllOf(StartsWith(file("bad_missing_symbol") + " cannot be loaded: "),
                    HasSubstr("undefined symbol: nobody_defines_this;"),
                    Not(HasSubstr("Bad file descriptor")), Not(HasSubstr("Illegal seek"))));
}

TEST_F(BadPluginsTest, InterfaceOfAnotherRevision) {
  EXPECT_THAT(
      error<PluginError>("plugin = \"bad_revision\""),
      StartsWith("plugin revision 0.1.0 offers sampler/2 and this program calls sampler/1"));
}

TEST_F(BadPluginsTest, FactoryThatMakesSomethingElse) {
  EXPECT_THAT(error<PluginError>("plugin = \"bad_interface\""),
              StartsWith("sampler \"interface\" (plugin interface 0.1.0) is declared as sampler/1 "
                         "but its factory makes something else"));
}

TEST_F(BadPluginsTest, FactoryThatReturnsNull) {
  EXPECT_THAT(error<PluginError>("plugin = \"bad_null_hook\""),
              StartsWith("sampler \"null_hook\" (plugin null_hook 0.1.0) was not made: its factory "
                         "returned null"));
}

TEST_F(BadPluginsTest, FactoryThatThrows) {
  const std::string plugin = "plugin = \"bad_throwing_hook\"\nhook = ";
  EXPECT_EQ(error<PluginError>(plugin + "\"out_of_range\""),
            "sampler \"out_of_range\" (plugin throwing_hook 0.1.0) failed in its constructor: no "
            "such row");
  EXPECT_THAT(error<PluginError>(plugin + "\"integer\""),
              EndsWith("failed in its constructor: it threw something that is no std::exception"));
  EXPECT_EQ(error<DataError>(plugin + "\"data\""),
            "sampler \"data\" (plugin throwing_hook 0.1.0) failed in its constructor: words.txt is "
            "missing");
}

TEST_F(BadPluginsTest, HookThatThePluginLacks) {
  EXPECT_THAT(error<ConfigError>("plugin = \"bad_throwing_hook\"\nhook = \"dta\""),
              AllOf(HasSubstr("test.toml:1: [sampler] asks for the hook \"dta\", which plugin "
                              "throwing_hook 0.1.0 lacks"),
                    HasSubstr("it offers sampler \"out_of_range\", sampler \"data\", sampler "
                              "\"integer\": write one of them as hook = \"NAME\"")));
}

TEST_F(BadPluginsTest, AnotherHookThanTheOnlyOne) {
  EXPECT_THAT(error<ConfigError>("plugin = \"bad_null_hook\"\nhook = \"other\""),
              HasSubstr("asks for the hook \"other\", which plugin null_hook 0.1.0 lacks; it "
                        "offers sampler \"null_hook\""));
}

TEST_F(BadPluginsTest, SeveralHooksAndNoneChosen) {
  EXPECT_THAT(error<ConfigError>("plugin = \"bad_throwing_hook\""),
              HasSubstr("test.toml:1: [sampler] names no hook, and plugin throwing_hook 0.1.0 has "
                        "several; it offers sampler \"out_of_range\""));
}

TEST_F(BadPluginsTest, PluginOfAnotherKind) {
  EXPECT_THAT(error<ConfigError>("plugin = \"token_mean\""),
              HasSubstr("test.toml:1: [sampler] needs a sampler, and plugin token_mean 0.1.0 "
                        "offers only loss_reducer \"token_mean\"; name another plugin"));
}

TEST_F(BadPluginsTest, MissingPlugin) {
  EXPECT_THAT(error<PluginError>("plugin = \"rank_splt\""),
              AllOf(HasSubstr("test.toml:1: plugin \"rank_splt\" was not found"),
                    HasSubstr("searched " + kBad.string() + ", " + kShipped.string())));
}

TEST_F(BadPluginsTest, TheFirstFileFoundIsFinal) {
  std::filesystem::copy_file(kBad / "bad_no_stamp.so", folder_.path() / "token_mean.so");
  HookFactory factory({folder_.path(), kShipped}, 1);
  const recipe::Recipe recipe = folder_.recipe("[loss_reducer]\nplugin = \"token_mean\"\n");
  EXPECT_THROW(factory.create<LossReducer>(recipe.section("loss_reducer")), PluginError);
}

}  // namespace
}  // namespace tally::plugin
