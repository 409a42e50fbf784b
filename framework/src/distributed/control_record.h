#pragma once

#include "digest/sha256.h"
#include "distributed/groups.h"
#include "distributed/stop.h"

#include <cstdint>
#include <optional>
#include <vector>

/// What ranks tell each other once a window, one window ahead, and what follows from it on every
/// rank alike.
namespace tally::distributed {

/// What a rank plans to do for one of its shards.
struct ShardRecord {
  int64_t shard = 0;
  int64_t microbatches = 0;
  std::vector<int64_t> counts;  ///< Of each term, over the shard's microbatches.
};

/// How a window went on one rank.
struct FinishedWindow {
  int64_t window = -1;
  bool finite = true;          ///< The reduced gradient had no NaN and no infinity.
  double objective = 0.0;      ///< Sum over passes of what the reducer returned.
  double gradient_norm = 0.0;  ///< Euclidean norm of the reduced gradient, before clipping.
  std::vector<double> sums;    ///< S of each term: sum of w * loss over the supervised positions of
                               ///< the rank's window.
  std::vector<int64_t> counts;  ///< N of each term on this rank.
};

struct ControlRecord {
  int64_t window = 0;     ///< The window that the record plans.
  int64_t step = -1;      ///< Of the evaluation before that window; -1: the window itself.
  bool has_data = false;  ///< false: this rank will not run the window, and its shards are empty.
  Stop stop;
  Digest chain;  ///< Of all plans up to this one.
  std::vector<ShardRecord> shards;
  std::optional<FinishedWindow> finished;
};

/// What every rank concludes from the records of all.
struct Agreement {
  int64_t window = 0;
  bool has_data = false;
  Stop stop;                                            ///< agreed() of all ranks.
  std::vector<int64_t> global_counts;                   ///< [terms]
  std::vector<std::vector<int64_t>> counts_by_rank;     ///< [world][terms]
  std::vector<int64_t> passes_by_rank;                  ///< Microbatches of each rank.
  std::vector<std::optional<FinishedWindow>> finished;  ///< By rank.
};

/// Records of one run have one length: Gloo aborts the process when ranks send different ones.
class ControlChannel {
 public:
  ControlChannel(Group& group, int64_t shards, int64_t terms);

  /// Sends this rank's record and returns what all agree on. Throws PluginError naming the ranks
  /// whose sampler drew another plan than rank 0's, RankError when a rank is lost. [loader, every
  /// rank]
  Agreement exchange(const ControlRecord& record);

  /// The int64 values of a record, and back.
  std::vector<int64_t> encode(const ControlRecord& record) const;
  ControlRecord decode(const int64_t* values) const;
  /// Folds the records of all ranks, in shard order.
  Agreement fold(const std::vector<ControlRecord>& records) const;

 private:
  size_t length() const;
  Group& group_;
  int64_t shards_;
  int64_t slots_;  ///< Shards of the rank that has the most.
  size_t terms_;
};

}  // namespace tally::distributed
