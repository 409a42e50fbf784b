// The kinds of cases that state a property other than a gradient.
#include "support/case_file.h"
#include "support/scripted_run.h"

#include <gtest/gtest.h>

#include <set>

namespace tally::train {
namespace {

using Json = nlohmann::json;
using Counts = std::vector<std::vector<int64_t>>;

/// Targets of a row, after truncation, shift and packing: what a task must make its weights of.
std::vector<double> weights_of(const Json& row, int64_t ignore) {
  auto labels = row.at("labels").get<std::vector<int64_t>>();
  if (row.contains("truncate_to")) labels.resize(row["truncate_to"].get<size_t>());
  std::vector<double> weights;
  for (const int64_t label : labels) weights.push_back(label == ignore ? 0.0 : 1.0);
  const bool shifted = row.at("shifted");
  std::vector<size_t> documents{labels.size()};
  if (row.contains("documents")) documents = row["documents"].get<std::vector<size_t>>();
  size_t begin = 0;
  for (const size_t length : documents) {
    if (!shifted) weights.at(begin) = 0.0;
    if (shifted && row.contains("documents")) weights.at(begin + length - 1) = 0.0;
    begin += length;
  }
  return weights;
}

/// A script of one window whose microbatches are those of `ranks`, each made by `example`.
template <class MakeExamples>
Script script_over(const Json& ranks, MakeExamples&& make) {
  Script script;
  std::vector<Shard> shards;
  for (const Json& rank : ranks) {
    shards.emplace_back();
    for (const Json& microbatch : rank) {
      shards.back().emplace_back();
      for (Example& example : make(microbatch)) {
        shards.back().back().push_back(static_cast<ExampleId>(script.examples.size()));
        script.examples.push_back(std::move(example));
      }
    }
  }
  script.plans = one_window(std::move(shards));
  return script;
}

/// Counts what the weights add up to: one position can stand for many.
class CountsWeights final : public LossReducer {
 public:
  std::vector<int64_t> count(const Batch& batch) const override {
    return {static_cast<int64_t>(batch.terms[0].weights.sum().item<double>())};
  }
  std::vector<double> scale(const std::vector<TermInfo>& /*terms*/,
                            const std::vector<TermCounts>& counts,
                            const Aggregation& aggregation) const override {
    return {static_cast<double>(aggregation.divisor) / static_cast<double>(counts[0].global)};
  }
};

TEST(CountCasesTest, TheWindowsCountIsTheNumberOfTargets) {
  for (const Case& one : cases_of("count")) {
    SCOPED_TRACE(one.at("id").get<std::string>());
    ScriptedOptions options;
    options.world = one.at("world");
    Script script;
    if (one.contains("rows")) {
      script = script_over(one["rows"], [&](const Json& rows) {
        std::vector<Example> examples;
        for (const Json& row : rows) {
          examples.emplace_back();
          for (const double weight : weights_of(row, one.at("ignore")))
            examples.back().push_back({.gradient = {1.0}, .weight = weight});
        }
        return examples;
      });
    } else {
      options.make_reducer = [] { return std::make_unique<CountsWeights>(); };
      script = script_over(one.at("counts"), [](const Json& count) {
        return std::vector<Example>{{{.gradient = {1.0}, .weight = number_of(count)}}};
      });
    }
    for (const RankLog& log : run_script_well(script, options))
      EXPECT_EQ(static_cast<double>(log.metrics.at(0).counts.at(0)), number_of(one.at("right")));
  }
}

TEST(ClipCasesTest, TheNormalisedGradientIsClippedOnce) {
  for (const Case& one : cases_of("clip")) {
    SCOPED_TRACE(one.at("id").get<std::string>());
    Script script = script_over(one.at("microbatches"), [](const Json& microbatch) {
      const double n = number_of(microbatch.at("n"));
      const Position position{.gradient = {number_of(microbatch.at("sum")[0]) / n,
                                           number_of(microbatch.at("sum")[1]) / n}};
      return std::vector<Example>{Example(static_cast<size_t>(n), position)};
    });
    script.parameters = 2;
    ScriptedOptions options;
    options.world = one.at("world");
    options.update = true;
    options.sets = {fmt::format("train.clip_norm={:.17g}", number_of(one.at("max_norm"))),
                    "optimizer.learning_rate=1"};
    for (const RankLog& log : run_script_well(script, options)) {
      for (size_t p = 0; p < 2; ++p)
        EXPECT_NEAR(-log.theta.at(p), number_of(one.at("right").at("gradient")[p]), 1e-12);
      EXPECT_NEAR(log.metrics.at(0).gradient_norm, number_of(one.at("right").at("norm")), 1e-12);
    }
  }
}

/// A run of `windows` windows of as many microbatches as each number says, on every rank, over
/// `buckets` buckets.
std::vector<RankLog> run_collectives(const Case& one, const std::string& policy) {
  Script script;
  script.parameters = one.at("buckets");
  script.examples = {{{.gradient = std::vector<double>(one.at("buckets"), 1.0)}}};
  ScriptedOptions options;
  options.world = one.at("world");
  options.policy = policy;
  options.sets = {"run.bucket_bytes=1"};
  for (const int64_t count : one.at("windows")) {
    const Shard shard(static_cast<size_t>(count), Microbatch{0});
    script.plans.push_back({static_cast<int64_t>(script.plans.size()),
                            std::vector<Shard>(static_cast<size_t>(options.world), shard)});
  }
  options.windows = static_cast<int64_t>(script.plans.size());
  return run_script_well(script, options);
}

/// [window][microbatch]
Counts all_reduces(const RankLog& log) {
  Counts counts;
  for (const PassLog& pass : log.passes) {
    counts.resize(static_cast<size_t>(pass.pass.window) + 1);
    counts.back().push_back(pass.all_reduces);
  }
  return counts;
}

TEST(CollectivesCasesTest, GradientsAreReducedInTheLastMicrobatchOfEveryWindow) {
  for (const Case& one : cases_of("collectives")) {
    for (const std::string policy : {"no_sync", "arms_late"}) {
      SCOPED_TRACE(one.at("id").get<std::string>() + " with " + policy);
      for (const RankLog& log : run_collectives(one, policy)) {
        const Json& right = one.at("right");
        EXPECT_EQ(all_reduces(log), right.at("gradient_allreduces").get<Counts>());
        // One exchange a window, and two that end the run.
        const auto windows = static_cast<int64_t>(one.at("windows").size());
        for (const Json& control : right.at("control_allreduces_per_window")) EXPECT_EQ(control, 1);
        EXPECT_EQ(log.control_exchanges, windows + 2);
      }
    }
  }
}

TEST(CollectivesCasesTest, SeesAPolicyThatReducesInEveryMicrobatch) {
  const Case& one = case_of("no-sync-around-backward-only");
  for (const RankLog& log : run_collectives(one, "every_pass"))
    EXPECT_EQ(all_reduces(log), one.at("wrong").at("gradient_allreduces").get<Counts>());
}

TEST(PartitionCasesTest, RanksWithUnevenDataRunTheSameWindows) {
  for (const Case& one : cases_of("partition")) {
    SCOPED_TRACE(one.at("id").get<std::string>());
    const auto batches = one.at("batches_per_rank").get<std::vector<int64_t>>();
    const int64_t accumulation = one.at("accumulation");
    Script script;
    script.examples = {{{.gradient = {1.0}}}};
    const int64_t longest = *std::max_element(batches.begin(), batches.end());
    for (int64_t begin = 0; begin < longest; begin += accumulation) {
      WindowPlan plan{static_cast<int64_t>(script.plans.size()), {}};
      for (const int64_t count : batches) {
        const int64_t size = std::clamp<int64_t>(count - begin, 0, accumulation);
        plan.shards.emplace_back(static_cast<size_t>(size), Microbatch{0});
      }
      script.plans.push_back(std::move(plan));
    }
    ScriptedOptions options;
    options.world = one.at("world");
    options.windows = 100;  // the data end before
    options.update = true;
    const auto logs = run_script_well(script, options);
    const Json& right = one.at("right");
    const auto windows = right.at("sizes").size();
    Counts sizes(windows, std::vector<int64_t>(logs.size(), 0));
    int64_t used = 0;
    for (size_t rank = 0; rank < logs.size(); ++rank) {
      EXPECT_EQ(logs[rank].result.windows, right.at("windows_per_rank")[rank]);
      EXPECT_EQ(logs[rank].gradients.size(), right.at("schedule_steps").get<size_t>());
      for (const PassLog& pass : logs[rank].passes) {
        if (pass.pass.shard < 0) continue;
        ++sizes.at(static_cast<size_t>(pass.pass.window))[rank];
        ++used;
      }
    }
    EXPECT_EQ(sizes, right.at("sizes").get<Counts>());
    EXPECT_EQ(used, right.at("microbatches_used"));
  }
}

/// What no test of this program runs yet, and why.
TEST(CasesTest, EveryCaseIsRunOrNamedHere) {
  std::set<std::string> left_out;
  for (const Case& one : all_cases()) {
    const std::string kind = one.at("kind");
    const bool positions = kind == "gradient" || kind == "logged-loss";
    std::string why;
    if (positions && !counts_tokens(one)) why = "no shipped reducer counts its units";
    if (kind == "sampler") why = "needs a sampler that goes through a split once";
    if (kind == "resume") why = "needs a run that continues from a checkpoint";
    if (why.empty()) continue;
    left_out.insert(one.at("id"));
    std::cout << "not run: " << one.at("id").get<std::string>() << " (" << why << ")\n";
  }
  EXPECT_EQ(left_out,
            (std::set<std::string>{
                "local-means-times-world-not-divided-by-steps", "auxiliary-term-times-world",
                "auxiliary-term-times-accumulation", "class-weights", "four-terms-own-units",
                "first-window-drawn-before-restore", "iterator-creation-draws-once-more",
                "rank-zero-state-for-all", "epoch-one-replays-the-order-of-epoch-zero",
                "every-restart-begins-with-epoch-zero", "start-epoch-times-accumulation",
                "position-in-the-epoch-forgotten", "ten-items-on-four-ranks-padded",
                "eleven-items-short-batch-dropped"}));
}

}  // namespace
}  // namespace tally::train
