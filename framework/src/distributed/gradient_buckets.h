#pragma once

#include "distributed/flat_parameters.h"
#include "distributed/groups.h"

#include <atomic>
#include <memory>
#include <vector>

namespace tally::distributed {

/// Reduces a window's accumulated gradients over ranks, bucket by bucket while the armed backward
/// runs.
///
/// Buckets are consecutive slices of the flat gradient and never change, so equal windows give
/// equal bits before and after a resume. A bucket is reduced once the last of its parameters has
/// accumulated in the armed pass, strictly in bucket order, since collectives are paired by order.
/// Parameters that took no part in that pass, but perhaps in an earlier one of the window, are
/// reduced all the same, after it.
class GradientBuckets {
 public:
  /// `bucket_bytes`: a bucket is closed when the next parameter would make it larger than this.
  GradientBuckets(FlatParameters& parameters, Group& group, int64_t bucket_bytes, int64_t divisor);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// The next backward belongs to another shard. The gradient of a shard is summed by itself and
  /// whole shards are added, so one rank over two shards gives the bits of two ranks.
  void end_shard();

  /// The next backward reduces.
  void arm();
  bool armed() const { return armed_; }
  /// After every backward. When armed: starts what is left, waits for all, divides by the divisor;
  /// afterwards not armed. After the last one of a window the gradients are complete.
  void finish(bool last_of_window);

  size_t size() const { return buckets_.size(); }
  /// All-reduces started so far.
  int64_t collectives() const { return collectives_; }

 private:
  struct Bucket {
    at::Tensor slice;
    int64_t offset = 0;
    int64_t parameters = 0;
    std::atomic<int64_t> pending{0};
    std::unique_ptr<Work> work;
  };
  class Hook;

  void parameter_ready(size_t parameter);
  void start_ready_buckets();
  void start(Bucket& bucket);
  void add_earlier_shards(at::Tensor gradients, int64_t offset);

  FlatParameters& parameters_;
  Group& group_;
  int64_t divisor_;
  at::Tensor earlier_shards_;  ///< [parameters], sum of the window's shards before this one.
  bool has_earlier_shards_ = false;
  bool armed_ = false;
  int64_t collectives_ = 0;
  size_t next_ = 0;  ///< First bucket not yet started.
  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::vector<size_t> bucket_of_;     ///< By parameter.
  std::vector<uint8_t> accumulated_;  ///< By parameter, in the armed pass.
};

}  // namespace tally::distributed
