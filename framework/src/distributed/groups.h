#pragma once

#include "distributed/board.h"
#include "distributed/rendezvous.h"

#include <c10/core/Device.h>
#include <tally/sync_policy.h>

#include <memory>

namespace c10d {
class ProcessGroup;
class Work;
}  // namespace c10d

namespace tally::distributed {

enum class Transport { kGloo, kNccl };

/// A process group and the thread that owns it: calls are paired over ranks by their order, so no
/// two threads share one. Every call and every wait is noted on the board, ends within the run's
/// timeout, and throws RankError.
class Group {
 public:
  Group(const Rendezvous& rendezvous, const std::string& name, Transport transport,
        c10::Device device, BoardWriter board);
  ~Group();
  Group(Group&&) noexcept = default;

  int64_t rank() const { return rank_; }
  int64_t world() const { return world_; }

  /// `kind` and `index` are what the board shows while the collective runs.
  std::unique_ptr<Work> all_reduce(at::Tensor tensor, ReduceOp op, CollectiveKind kind,
                                   int64_t index);
  std::unique_ptr<Work> all_gather(at::Tensor output, at::Tensor input, CollectiveKind kind,
                                   int64_t index);
  /// `mine` of every rank, [world, ...] on the CPU. Alone, nothing is exchanged. `device`: where
  /// the group's tensors live.
  at::Tensor gather(const at::Tensor& mine, CollectiveKind kind, int64_t index,
                    c10::Device device = c10::kCPU);
  std::unique_ptr<Work> reduce_scatter(at::Tensor output, at::Tensor input, CollectiveKind kind,
                                       int64_t index);
  std::unique_ptr<Work> all_to_all(at::Tensor output, at::Tensor input, CollectiveKind kind,
                                   int64_t index);
  std::unique_ptr<Work> broadcast(at::Tensor tensor, int64_t root, CollectiveKind kind,
                                  int64_t index);

  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const { return group_; }

 private:
  template <class Start>
  std::unique_ptr<Work> start(CollectiveKind kind, int64_t index, Start&& start);

  int64_t rank_;
  int64_t world_;
  BoardWriter board_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

/// The three groups of a run.
struct Groups {
  Group control;    ///< Loader thread. Gloo, CPU tensors.
  Group gradients;  ///< Trainer thread and the autograd threads that it waits for. Gloo or NCCL,
                    ///< tensors of the training device.
  Group state;      ///< Whoever writes checkpoints. Gloo, CPU tensors.

  Groups(const Rendezvous& rendezvous, Transport transport, c10::Device device,
         const BoardWriter& board);
};

}  // namespace tally::distributed
