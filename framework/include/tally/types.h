#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Values that travel between the host and the hooks. Plain data, owned by whoever holds them; a
/// tensor shares its storage as usual.
namespace tally {

/// Position of an example in its split, from 0.
using ExampleId = int64_t;

/// The examples of one forward and one backward. May be empty.
using Microbatch = std::vector<ExampleId>;

/// The microbatches of one shard in one window, in the order in which they are processed.
using Shard = std::vector<Microbatch>;

/// Everything that feeds one optimizer update: all microbatches of all shards. The same on every
/// rank.
struct WindowPlan {
  int64_t window = 0;  ///< Index of the window in the run, from 0.
  /// As many as `window.shards` says; rank r runs the shards s with s % world == r.
  std::vector<Shard> shards;
};

/// All that a sampler may know of a split.
struct ExampleTable {
  /// Length of each example in the task's own unit (tokens, pixels, ...); the index is the
  /// ExampleId.
  std::vector<int64_t> lengths;
};

/// What a batch is padded to when the caller needs a fixed shape.
struct BatchShape {
  int64_t examples = 0;  ///< Rows.
  int64_t length = 0;    ///< Positions a row, in the task's unit.
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// What one term of the loss averages over, as the task declares it.
struct TermInfo {
  std::string name;  ///< Unique within the task.
  /// What one weight stands for: "token", "sequence", "document", "weight" or "microbatch". A
  /// reducer may average over another one, see LossReducer::unit().
  std::string unit;
  double coefficient = 1.0;  ///< c_t in the objective  sum over t of c_t * S_t / N_t.
  /// false: S_t over a window is not the sum of its microbatches' values. Only a reducer that
  /// takes_non_additive() trains such a task.
  bool additive = true;
};

/// One term's supervision of a batch.
struct Term {
  std::string name;
  /// Floating point, shaped like the term's loss; 0 = not supervised. No gradient flows into it.
  at::Tensor weights;
  /// int64, shaped like `weights`: document of each position, from 0; absent = one document a row.
  std::optional<at::Tensor> documents;
};

/// One microbatch, ready for the model. Made on the CPU by Task::load; the host copies every tensor
/// to the device.
struct Batch {
  std::vector<ExampleId> examples;
  std::vector<NamedTensor> inputs;  ///< Whatever forward wants. The first dimension is the row.
  std::vector<Term> terms;          ///< In the order of Task::terms().
};

/// Count of one term over a whole window, in the reducer's unit.
struct TermCounts {
  int64_t global = 0;  ///< Over all ranks.
  int64_t local = 0;   ///< Of the rank that asks.
};

/// How the sync policy joins the ranks' gradients: their sum, divided by `divisor`.
struct Aggregation {
  int64_t world = 1;
  int64_t divisor = 1;  ///< world for a mean over ranks, 1 for a sum.
};

/// A figure of an evaluation; the host adds both over batches and shows sum / count.
struct Measure {
  double sum = 0.0;
  int64_t count = 0;
};
using Measures = std::map<std::string, Measure>;

}  // namespace tally
