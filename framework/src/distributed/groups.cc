#include "distributed/groups.h"

#include "distributed/failure.h"
#include "process/ending.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>

namespace tally::distributed {
namespace {

using c10d::ProcessGroup;

class PendingWork final : public Work {
 public:
  PendingWork(c10::intrusive_ptr<c10d::Work> work, BoardWriter board, CollectiveKind kind,
              int64_t index)
      : work_(std::move(work)), board_(std::move(board)), kind_(kind), index_(index) {}

  void wait() override {
    try {
      work_->wait();
    } catch (...) {
      rethrow_from_collective(board_, kind_, index_);
    }
    board_.collective(kind_, index_, true);
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  BoardWriter board_;
  CollectiveKind kind_;
  int64_t index_;
};

c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                            const Membership& self,
                                            std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  // Loopback unless the run was told of another address; then GLOO_SOCKET_IFNAME, or the host's own
  // name, decides.
  if (self.address.empty() || is_loopback(self.address)) {
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  } else {
    options = c10d::ProcessGroupGloo::Options::create_default(timeout);
  }
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(self.rank),
                                                     static_cast<int>(self.world), options);
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                            const Membership& self,
                                            std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  map_aborts_to_rank_errors();
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, static_cast<int>(self.rank),
                                                     static_cast<int>(self.world), options);
}

/// Gloo wants every piece shaped like the input; a flat view of each makes any shapes fit.
at::Tensor flat(const at::Tensor& tensor) { return tensor.view({-1}); }

c10d::ReduceOp op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return c10d::ReduceOp::SUM;
    case ReduceOp::kMin:
      return c10d::ReduceOp::MIN;
    case ReduceOp::kMax:
      return c10d::ReduceOp::MAX;
  }
  throw std::logic_error("unknown reduce operation");
}

/// LibTorch's flight recorder is one map for the whole process that every collective writes without
/// a lock: groups of different threads crash in it. The board says what it would.
void disable_flight_recorder() {
  [[maybe_unused]] static const int disabled =
      ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/0);
}

}  // namespace

Group::Group(const Rendezvous& rendezvous, const std::string& name, Transport transport,
             c10::Device device, BoardWriter board)
    : rank_(rendezvous.self().rank), world_(rendezvous.self().world), board_(std::move(board)) {
  const Membership& self = rendezvous.self();
  disable_flight_recorder();
  try {
    auto store = c10::make_intrusive<c10d::PrefixStore>(name, rendezvous.store());
    auto transport_store = c10::make_intrusive<c10d::PrefixStore>("transport", store);
    const bool nccl = transport == Transport::kNccl;
    auto backend = nccl ? make_nccl(transport_store, self, rendezvous.timeout())
                        : make_gloo(transport_store, self, rendezvous.timeout());
    const auto type = nccl ? ProcessGroup::BackendType::NCCL : ProcessGroup::BackendType::GLOO;
    group_ = c10::make_intrusive<ProcessGroup>(store, static_cast<int>(self.rank),
                                               static_cast<int>(self.world));
    group_->setBackend(device.type(), type, backend);
    group_->setDefaultBackend(type);
  } catch (const std::exception& error) {
    throw RankError(fmt::format(
        "rank {} cannot join the group '{}': {}. Check the other ranks' logs{}", rank_, name,
        process::first_line(error),
        is_loopback(self.address) ? "" : ", and GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME"));
  }
}

Group::~Group() {
  if (group_) group_->shutdown();
}

template <class Start>
std::unique_ptr<Work> Group::start(CollectiveKind kind, int64_t index, Start&& start) {
  board_.collective(kind, index, false);
  try {
    return std::make_unique<PendingWork>(start(), board_, kind, index);
  } catch (...) {
    rethrow_from_collective(board_, kind, index);
  }
}

std::unique_ptr<Work> Group::all_reduce(at::Tensor tensor, ReduceOp op, CollectiveKind kind,
                                        int64_t index) {
  return start(kind, index, [&] {
    std::vector<at::Tensor> tensors{std::move(tensor)};
    c10d::AllreduceOptions options;
    options.reduceOp = op_of(op);
    return group_->allreduce(tensors, options);
  });
}

std::unique_ptr<Work> Group::all_gather(at::Tensor output, at::Tensor input, CollectiveKind kind,
                                        int64_t index) {
  return start(kind, index, [&] {
    at::Tensor to = flat(output);
    at::Tensor from = flat(input);
    return group_->_allgather_base(to, from);
  });
}

at::Tensor Group::gather(const at::Tensor& mine, CollectiveKind kind, int64_t index,
                         c10::Device device) {
  if (world_ == 1) return mine.to(c10::kCPU).unsqueeze(0);
  const at::Tensor input = mine.to(device);
  std::vector<int64_t> sizes = mine.sizes().vec();
  sizes.insert(sizes.begin(), world_);
  at::Tensor all = at::empty(sizes, input.options());
  all_gather(all, input, kind, index)->wait();
  return all.to(c10::kCPU);
}

std::unique_ptr<Work> Group::reduce_scatter(at::Tensor output, at::Tensor input,
                                            CollectiveKind kind, int64_t index) {
  return start(kind, index, [&] {
    at::Tensor to = flat(output);
    at::Tensor from = flat(input);
    return group_->_reduce_scatter_base(to, from);
  });
}

std::unique_ptr<Work> Group::all_to_all(at::Tensor output, at::Tensor input, CollectiveKind kind,
                                        int64_t index) {
  return start(kind, index, [&] {
    std::vector<int64_t> even;
    return group_->alltoall_base(output, input, even, even);
  });
}

std::unique_ptr<Work> Group::broadcast(at::Tensor tensor, int64_t root, CollectiveKind kind,
                                       int64_t index) {
  return start(kind, index, [&] {
    std::vector<at::Tensor> tensors{std::move(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return group_->broadcast(tensors, options);
  });
}

Groups::Groups(const Rendezvous& rendezvous, Transport transport, c10::Device device,
               const BoardWriter& board)
    : control(rendezvous, "control", Transport::kGloo, c10::kCPU, board),
      gradients(rendezvous, "gradients", transport, device, board),
      state(rendezvous, "state", Transport::kGloo, c10::kCPU, board) {}

}  // namespace tally::distributed
