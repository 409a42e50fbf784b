#pragma once

#include "recipe/recipe.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tally::run {

inline constexpr int64_t kMaxRanks = 1 << 20;

/// What the host itself reads from a recipe; the hooks read their own sections.
struct Settings {
  std::string name;
  int64_t seed = 1;
  /// rng = "keyed": dropout is a function of (seed, window, shard, microbatch).
  bool keyed_rng = false;

  int64_t ranks = 1;
  std::chrono::milliseconds timeout{0};  ///< No wait for another rank is longer.
  int64_t threads = 1;                   ///< Of LibTorch within an operation; decides bits.
  std::string device;                    ///< "auto", "cpu" or "cuda".
  std::string backend;                   ///< "auto", "gloo" or "nccl"; of the gradients.
  /// Equal runs give equal bits on a GPU; an operation that cannot is an error.
  bool deterministic = true;
  bool allow_idle_ranks = false;

  std::filesystem::path data_folder;
  std::filesystem::path checkpoint_folder;
  int64_t checkpoint_every = 0;        ///< Save after so many windows each; 0 = only at the end.
  std::vector<int64_t> checkpoint_at;  ///< And after these.
  int64_t checkpoint_keep = 0;         ///< Newest steps that stay; 0 = all.
  bool async_checkpoint = false;       ///< Written beside training.
  bool warn_on_failed_checkpoint = false;
  std::chrono::milliseconds stop_grace{0};  ///< From a stop signal to the end of the saving.

  int64_t evaluate_every = 0;         ///< Evaluate after so many windows each; 0 = never.
  std::string evaluation_split;       ///< On these examples.
  int64_t evaluation_batch_size = 1;  ///< Examples of a batch, of the verb `evaluate` too.

  int64_t updates = 0;  ///< Windows of the whole run.
  int64_t stop_at = 0;  ///< Windows after which this job stops and saves.
  bool skip_empty_windows = false;
  double clip_norm = 0.0;  ///< Largest Euclidean norm of the gradient; 0 = not clipped.
  int64_t bucket_bytes = 0;

  int64_t shards = 1;        ///< Slices of a window.
  int64_t accumulation = 1;  ///< Microbatches of a shard in a window.
  int64_t batch_size = 1;    ///< Examples of a microbatch.
};

/// Throws ConfigError with the place of the first value that cannot be used.
Settings read_settings(const recipe::Recipe& recipe);

}  // namespace tally::run
