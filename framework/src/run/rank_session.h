#pragma once

#include "distributed/board.h"
#include "distributed/board_publisher.h"
#include "distributed/flat_parameters.h"
#include "distributed/groups.h"
#include "distributed/membership.h"
#include "distributed/rendezvous.h"
#include "run/job.h"

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

namespace tally::run {

/// A rank that has joined its run: data checked, groups formed, model made and equal on all ranks.
/// Everything that a job of windows stands on. Construction is a sequence that every rank goes
/// through; each step throws its own error.
class RankSession {
 public:
  RankSession(Job& job, const distributed::Membership& self, distributed::BoardWriter board);
  ~RankSession();

  Job& job() { return job_; }
  int64_t rank() const { return self_.rank; }
  int64_t world() const { return self_.world; }
  /// Whether another process of tally started this rank and looks after the run's folders.
  bool has_parent() const { return !self_.board_file.empty(); }
  c10::Device device() const { return device_; }
  distributed::BoardWriter& board() { return board_; }
  distributed::Groups& groups() { return *groups_; }
  distributed::FlatParameters& parameters() { return *parameters_; }
  const std::vector<TermInfo>& terms() const { return terms_; }
  /// Parameters and buffers under their names: what a checkpoint calls the model.
  std::vector<NamedTensor> model() const;
  const std::string& data_lock() const { return data_lock_; }

  /// Throws RankError on every rank when `digest` is not the same on all; `what` names the thing.
  /// [trainer, every rank]
  void require_equal_digest(const Digest& digest, const std::string& what);

  /// Brings the other ranks' records to this rank's board where no file is shared, as far as they
  /// can still be reached.
  void collect_board();

 private:
  void prepare_data();
  void join();
  void make_model();
  void share_initial_state();

  Job& job_;
  distributed::Membership self_;
  distributed::BoardWriter board_;
  std::vector<TermInfo> terms_;
  std::string data_lock_;
  c10::Device device_;
  std::unique_ptr<distributed::Rendezvous> rendezvous_;
  std::unique_ptr<distributed::BoardPublisher> publisher_;
  std::unique_ptr<distributed::Groups> groups_;
  std::unique_ptr<distributed::FlatParameters> parameters_;
  std::vector<NamedTensor> buffers_;
};

/// The ranks whose digest is not rank 0's, the same list on every rank. `device`: where the group's
/// tensors lie. [the group's thread, every rank]
std::vector<int64_t> ranks_unlike_the_first(distributed::Group& group, const Digest& digest,
                                            distributed::CollectiveKind kind, c10::Device device);

/// SHA-256 over names and bytes.
Digest digest_of(const std::vector<NamedTensor>& tensors);

}  // namespace tally::run
