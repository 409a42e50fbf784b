#include "plugin/hooked.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace tally::plugin {
namespace {

struct Thrower {
  std::function<void()> act;
};

/// Text and exit code of the error that leaves a hook in which `act` is run.
template <class Thrown>
std::pair<std::string, int> leaves(std::function<void()> act) {
  const Hooked<Thrower> hook(std::make_unique<Thrower>(Thrower{std::move(act)}),
                             {"task", "lm", "tiny", "0.1.0"});
  try {
    hook.call([](Thrower& thrower) { thrower.act(); });
  } catch (const Thrown& error) {
    return {error.what(), error.exit_code()};
  }
  return {};
}

const std::string kFailed = "task \"lm\" (plugin tiny 0.1.0) failed: ";

TEST(HookedTest, ATypedErrorKeepsTypeAndExitCode) {
  EXPECT_EQ(leaves<ConfigError>([] { throw ConfigError("a"); }), std::pair(kFailed + "a", 2));
  EXPECT_EQ(leaves<DataError>([] { throw DataError("b"); }), std::pair(kFailed + "b", 3));
  EXPECT_EQ(leaves<RankError>([] { throw RankError("c"); }), std::pair(kFailed + "c", 4));
  EXPECT_EQ(leaves<PluginError>([] { throw PluginError("d"); }), std::pair(kFailed + "d", 5));
  EXPECT_EQ(leaves<Error>([] { throw Error("e", 70); }), std::pair(kFailed + "e", 70));
}

TEST(HookedTest, AnythingElseIsThePluginsError) {
  EXPECT_EQ(leaves<PluginError>([] { throw std::runtime_error("f"); }),
            std::pair(kFailed + "f", 5));
  EXPECT_EQ(leaves<PluginError>([] { throw 7; }),
            std::pair(kFailed + "it threw something that is no std::exception", 5));
}

TEST(HookedTest, AnErrorOfLibTorchLosesItsStackTrace) {
  const auto [text, code] = leaves<PluginError>([] { TORCH_CHECK(false, "shapes differ"); });
  EXPECT_EQ(text, kFailed + "shapes differ");
  EXPECT_EQ(code, 5);
}

TEST(HookedTest, ThePlaceBelongsToTheThread) {
  set_place("at window 1, rank 0");
  std::string other = "unset";
  std::thread([&] { other = place(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_EQ(place(), "at window 1, rank 0");
  set_place("");
}

TEST(HookedTest, ReturnsWhatTheHookReturns) {
  const Hooked<int> hook(std::make_unique<int>(7), {"task", "lm", "tiny", "0.1.0"});
  EXPECT_EQ(hook.call([](int& value) { return value; }), 7);
  hook.call([](int& value) -> int& { return value; }) = 8;
  EXPECT_EQ(hook.call([](int& value) { return value; }), 8);
}

TEST(HookedTest, ReleasesTheContextAfterTheHook) {
  std::string order;
  struct Last {
    std::string* order;
    const char* name;
    ~Last() { *order += name; }
  };
  const auto make = [&](const char* hook, const char* context) {
    return Hooked<Last>(std::unique_ptr<Last>(new Last{&order, hook}), {},
                        std::shared_ptr<Last>(new Last{&order, context}));
  };
  {
    auto first = make("hook1 ", "context1 ");
    first = make("hook2 ", "context2 ");
    EXPECT_EQ(order, "hook1 context1 ");
  }
  EXPECT_EQ(order, "hook1 context1 hook2 context2 ");
}

}  // namespace
}  // namespace tally::plugin
