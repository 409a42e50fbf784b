#pragma once

#include "checkpoint/checkpoint.h"
#include "run/training_state.h"

#include <exception>
#include <optional>
#include <vector>

namespace tally::save {

/// What one rank saves of the run after its last finished window.
struct Snapshot {
  int64_t windows = 0;  ///< Finished ones.
  checkpoint::StateBundle states;
  std::optional<checkpoint::CheckpointContent> content;  ///< On rank 0.
  std::exception_ptr failure;  ///< Why it is not whole: every rank hears of it when it is written.
};

/// Memory on the CPU that one snapshot after another is copied into: to get fresh memory takes
/// several times as long as to copy.
class HostCopies {
 public:
  /// Forgets the tensors of the last snapshot, which must not be read any more.
  void begin() { next_ = 0; }
  /// Of a GPU's tensor the copy is under way when this returns: see wait_for_device().
  at::Tensor copy(const at::Tensor& tensor);

 private:
  std::vector<at::Tensor> tensors_;
  size_t next_ = 0;
};

enum class Values {
  kCopied,  ///< The snapshot stays as it is while training goes on.
  kShared,  ///< Of tensors on the CPU only views are taken: until the next window changes them.
};

/// All tensors are on the CPU; those of a GPU are copied in any case, and waited for. The last
/// snapshot with the same `copies` ends with this one. [trainer, every rank]
Snapshot take_snapshot(run::RankSession& session, run::TrainingState& state, HostCopies& copies,
                       Values values);

}  // namespace tally::save
