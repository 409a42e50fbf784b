#include "run/settings.h"

#include "recipe/file_name.h"
#include "run/run_folder.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <limits>

namespace tally::run {
namespace {

constexpr double kShortestSeconds = 0.001;
constexpr int64_t kMaxSeconds = 7 * 24 * 3600;
constexpr int64_t kAnyCount = std::numeric_limits<int64_t>::max();

std::chrono::milliseconds duration(const recipe::Section& section, std::string_view key,
                                   double fallback) {
  const double seconds = section.number(key, fallback);
  if (!(seconds >= kShortestSeconds && seconds <= static_cast<double>(kMaxSeconds))) {
    section.reject(key, fmt::format("must be at least {} and at most {} seconds", kShortestSeconds,
                                    kMaxSeconds));
  }
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

std::filesystem::path folder(const recipe::Section& section, const char* fallback) {
  const std::string text = section.text("folder", fallback);
  if (const auto fault = recipe::fault_of_path(text)) section.reject("folder", *fault);
  return text;
}

std::string read_name(const recipe::Recipe& recipe) {
  std::string name = recipe.name();
  if (is_reserved(name)) {
    recipe.section("").reject(
        "name", fmt::format("is taken: {} is tally's own; write another name at the top of the "
                            "recipe",
                            (outputs_folder() / name).string()));
  }
  return name;
}

void read_run(const recipe::Section& run, Settings& settings) {
  settings.ranks = run.integer_in("ranks", 1, 1, kMaxRanks);
  settings.timeout = duration(run, "timeout", 300.0);
  settings.threads = run.integer_in("threads", 1, 1, 1024);
  settings.device = run.choice("device", "auto", {"auto", "cpu", "cuda"});
  settings.backend = run.choice("backend", "auto", {"auto", "gloo", "nccl"});
  settings.deterministic = run.boolean("deterministic", true);
  settings.allow_idle_ranks = run.boolean("allow_idle_ranks", false);
  settings.bucket_bytes = run.integer_in("bucket_bytes", int64_t{25} << 20, 1, kAnyCount);
}

void read_window(const recipe::Section& window, Settings& settings) {
  settings.shards = window.integer_in("shards", std::nullopt, 1, kMaxRanks);
  settings.accumulation = window.integer_in("accumulation", 1, 1, kAnyCount);
  settings.batch_size = window.integer_in("batch_size", 1, 1, kAnyCount);
}

void read_train(const recipe::Section& train, Settings& settings) {
  settings.updates = train.integer_in("updates", 100, 1, kAnyCount);
  settings.stop_at = train.integer_in("stop_at", settings.updates, 1, kAnyCount);
  settings.skip_empty_windows =
      train.choice("on_empty_window", "error", {"error", "skip"}) == "skip";
  settings.clip_norm = train.number("clip_norm", 0.0);
  if (!(settings.clip_norm >= 0.0))
    train.reject("clip_norm", "must be at least 0 (0 = no clipping)");
}

void read_checkpoint(const recipe::Section& section, Settings& settings) {
  settings.checkpoint_folder = folder(section, "artifacts/checkpoints");
  settings.checkpoint_every = section.integer_in("every", 0, 0, kAnyCount);
  settings.checkpoint_at = section.integers("at", std::vector<int64_t>{});
  for (const int64_t windows : settings.checkpoint_at) {
    if (windows < 1) section.reject("at", "must hold numbers of windows, each at least 1");
  }
  settings.checkpoint_keep = section.integer_in("keep", 0, 0, kAnyCount);
  settings.async_checkpoint = section.boolean("async", false);
  settings.warn_on_failed_checkpoint =
      section.choice("on_error", "stop", {"stop", "warn"}) == "warn";
  settings.stop_grace = duration(section, "grace_seconds", 60.0);
}

void read_evaluate(const recipe::Section& section, Settings& settings) {
  settings.evaluate_every = section.integer_in("every", 0, 0, kAnyCount);
  settings.evaluation_split =
      section.choice("split", "validation", {"validation", "test", "train"});
  settings.evaluation_batch_size = section.integer_in("batch_size", 8, 1, kAnyCount);
}

}  // namespace

Settings read_settings(const recipe::Recipe& recipe) {
  Settings settings;
  const recipe::Section root = recipe.section("");
  settings.name = read_name(recipe);
  settings.seed = root.integer_in("seed", 1, 0, kAnyCount);
  settings.keyed_rng = root.choice("rng", "stream", {"stream", "keyed"}) == "keyed";
  read_run(recipe.section("run"), settings);
  read_train(recipe.section("train"), settings);
  settings.data_folder = folder(recipe.section("data"), "data");
  read_checkpoint(recipe.section("checkpoint"), settings);
  read_evaluate(recipe.section("evaluate"), settings);
  read_window(recipe.section("window"), settings);
  if (settings.ranks > settings.shards && !settings.allow_idle_ranks) {
    recipe.section("run").reject(
        "ranks", fmt::format("must be at most window.shards = {}, since rank r runs the shards s "
                             "with s % ranks == r; "
                             "lower it, raise window.shards, or set run.allow_idle_ranks = true",
                             settings.shards));
  }
  return settings;
}

}  // namespace tally::run
