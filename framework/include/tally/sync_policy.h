#pragma once

#include <tally/hook.h>
#include <tally/types.h>

#include <memory>

namespace tally {

/// A collective under way.
class Work {
 public:
  virtual ~Work() = default;
  /// Blocks the calling thread (CPU tensors) or the current stream (GPU tensors) until the result
  /// is there. Throws RankError when a rank is lost or the run's timeout passes.
  virtual void wait() = 0;
};

enum class ReduceOp { kSum, kMin, kMax };

/// One microbatch's place in the window of this rank.
struct Pass {
  int64_t window = 0;
  int64_t index = 0;   ///< From 0.
  int64_t count = 0;   ///< Passes of this rank in this window, at least 1. Ranks may differ.
  int64_t shard = -1;  ///< -1: of no shard, an empty pass that keeps the ranks alike.
  bool last_of_shard = false;  ///< The next pass, if any, is of another shard.
  bool last() const { return index + 1 == count; }
};

/// The host's services for a policy. Tensors are on the training device; both flat tensors keep
/// storage and layout for the whole run. Collectives are paired by call order: every rank makes the
/// same calls in the same order. [trainer]
class Sync {
 public:
  virtual ~Sync() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t world() const = 0;

  /// The next backward reduces the gradients accumulated so far in the window, bucket by bucket
  /// while it runs: summed over ranks, then divided by SyncPolicy::divisor(world). Once a window on
  /// every rank for a policy that synchronises fully. What an armed pass has reduced stays in
  /// gradients(), and later passes add to it: arming again reduces that sum once more.
  virtual void arm() = 0;

  /// [parameters], all gradients of this rank, in reverse parameter order.
  ///
  /// Each shard is summed by itself, and whole shards are added, so that one rank over two shards
  /// gives the bits of two ranks. So in after_backward they hold: before the last pass of a shard,
  /// a part of that shard's sum; in the last of a shard (Pass::last_of_shard), that shard's whole
  /// sum, after which the host puts it aside and starts the next shard from zero; in the last of
  /// the window, the sum of all shards. A policy with collectives of its own therefore works on the
  /// last pass of the window, or shard by shard, never on the increments between passes.
  virtual at::Tensor gradients() = 0;
  /// [parameters], all parameters of this rank, in the same layout.
  virtual at::Tensor parameters() = 0;

  /// Collectives take contiguous tensors of one floating-point or integer dtype, equally long on
  /// every rank, and leave the result in place or in `output`. Both must stay alive until wait().
  virtual std::unique_ptr<Work> all_reduce(at::Tensor tensor, ReduceOp op) = 0;
  /// `output`: world times `input`, rank by rank.
  virtual std::unique_ptr<Work> all_gather(at::Tensor output, at::Tensor input) = 0;
  /// `input`: world times `output`; rank r gets the sum of the r-th pieces.
  virtual std::unique_ptr<Work> reduce_scatter(at::Tensor output, at::Tensor input) = 0;
  /// Equal pieces of the first dimension, rank by rank.
  virtual std::unique_ptr<Work> all_to_all(at::Tensor output, at::Tensor input) = 0;
  virtual std::unique_ptr<Work> broadcast(at::Tensor tensor, int64_t root) = 0;
};

/// Decides when ranks exchange what. One a recipe (`[sync_policy]`).
class SyncPolicy : public Hook {
 public:
  /// What the sum of the ranks' gradients is divided by: `world` for a mean, 1 for a sum. Constant.
  /// The host measures it at start, on a window of two shards with two passes each, and refuses a
  /// policy that does something else.
  virtual int64_t divisor(int64_t world) const { return world; }

  /// true: every rank runs as many passes as the rank with the most; the extra ones come first and
  /// are empty.
  virtual bool equal_passes() const { return false; }

  virtual void before_forward(const Pass& /*pass*/, Sync& /*sync*/) {}
  virtual void before_backward(const Pass& /*pass*/, Sync& /*sync*/) {}
  virtual void after_backward(const Pass& /*pass*/, Sync& /*sync*/) {}
  /// After the last pass and its reduction, before the gradient is judged, clipped and used.
  virtual void after_window(Sync& /*sync*/) {}
  /// After the optimizer step. Parameters are the same on every rank from here to the next step:
  /// checkpoints and evaluations rely on it.
  virtual void after_step(Sync& /*sync*/) {}
};

}  // namespace tally
