// A recipe of any content is a job or a sentence: never a crash, a hang or an exception of another
// kind.
#include "process/ending.h"
#include "recipe_mutator.h"
#include "report/text.h"
#include "run/job.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <tally/error.h>

namespace tally::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShipped[] = {"correct", "wrong", "reference", "masked", "resume"};

/// Left in the folder for temporary files when the process crashes.
class JobFuzz : public ::testing::Test {
 protected:
  JobFuzz() {
    fs::create_directories(folder_ / "recipes");
    fs::create_directories(folder_ / "configs");
  }

  void write_mutation(uint32_t seed) {
    const fs::path source = TALLY_SOURCE_FOLDER;
    const std::string recipe = kShipped[seed % std::size(kShipped)];
    RecipeMutator mutator(seed);
    const bool of_config = seed % 3 == 0;
    const std::string own = content_of(source / "recipes" / (recipe + ".toml"));
    const std::string config = content_of(source / "configs" / "minimum.toml");
    put(recipe_, of_config ? own : mutator.mutated(own));
    put(folder_ / "configs/minimum.toml", of_config ? mutator.mutated(config) : config);
  }

  /// Empty for a job that was made, else the sentence why not.
  std::string assemble_mutation() {
    try {
      const recipe::Recipe recipe = recipe::Recipe::load({recipe_, std::nullopt, {}});
      const Job job = assemble(recipe, {TALLY_BINARY_FOLDER "/lib/tally/plugins"});
      put(folder_ / "recipes/resolved.toml", job.recipe.resolved());
      const recipe::Recipe again =
          recipe::Recipe::load({folder_ / "recipes/resolved.toml", std::nullopt, {}});
      EXPECT_EQ(again.resolved(), job.recipe.resolved());
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    } catch (const PluginError& error) {
      return error.what();
    } catch (const DataError& error) {
      return error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "of no type that a recipe may cause: " << error.what();
      return error.what();
    }
  }

  TemporaryFolder folder_;
  const fs::path recipe_ = folder_ / "recipes/mutated.toml";
};

TEST_F(JobFuzz, TwoThousandMutationsOfTheShippedRecipes) {
  int jobs = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    write_mutation(seed);
    const std::string sentence = assemble_mutation();
    jobs += sentence.empty() ? 1 : 0;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    EXPECT_EQ(sentence, report::one_line(sentence));
    EXPECT_LT(sentence.size(), 2000U) << sentence;
    if (HasFailure()) return;
  }
  // Otherwise the mutations say little.
  EXPECT_GT(jobs, 100);
  EXPECT_LT(jobs, 1000);
}

}  // namespace
}  // namespace tally::run
