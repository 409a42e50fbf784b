#include "distributed/groups.h"
#include "log/log.h"
#include "process/ending.h"
#include "run/device.h"
#include "verbs/verbs.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <memory>

namespace tally::verbs {
namespace {

using distributed::Board;
using distributed::BoardWriter;
using distributed::CollectiveKind;
using distributed::Membership;
using distributed::Transport;

constexpr std::chrono::seconds kTimeout{60};

/// Rank r brings r + 1, so every rank must then hold W (W + 1) / 2.
void add_up(const Membership& self, Transport transport, const BoardWriter& board) {
  c10::Device device(c10::kCPU);
  if (transport == Transport::kNccl)
    device = {c10::kCUDA, static_cast<c10::DeviceIndex>(self.local_rank)};
  run::use_device(device);
  const distributed::Rendezvous rendezvous(self, kTimeout);
  distributed::Group group(rendezvous, "doctor", transport, device, board);
  const at::Tensor values =
      at::full({1 << 16}, static_cast<double>(self.rank + 1), at::kFloat).to(device);
  group.all_reduce(values, ReduceOp::kSum, CollectiveKind::kPolicy, 0)->wait();
  const auto expected = static_cast<double>(self.world * (self.world + 1)) / 2.0;
  const at::Tensor found = values.to(at::kCPU);
  if (found.eq(expected).all().item<bool>()) return;
  throw RankError(fmt::format(
      "the all-reduce of {} ranks gave between {:g} and {:g} on rank {}, and should give {:g}",
      self.world, found.min().item<double>(), found.max().item<double>(), self.rank, expected));
}

int run(const std::string& transport) {
  const std::optional<Membership> self = distributed::membership_from_environment();
  if (!self || self->board_file.empty())
    throw ConfigError("doctor-rank is a rank of `tally doctor` and not meant to be called");
  log::set_origin(fmt::format("rank {}", self->rank));
  BoardWriter board(Board::open(self->board_file, self->world), self->rank);
  int exit_code = 0;
  try {
    add_up(*self, transport == "nccl" ? Transport::kNccl : Transport::kGloo, board);
    board.phase(distributed::Phase::kFinished);
  } catch (const std::exception& error) {
    board.fail(process::first_line(error));
    log::error(process::first_line(error));
    exit_code = process::exit_code_of(std::current_exception());
  }
  process::end_process(exit_code);
}

}  // namespace

cli::RunVerb declare_doctor_rank(cli::Arguments arguments) {
  auto transport = std::make_shared<std::string>("gloo");
  arguments.choice("--transport", *transport, {"gloo", "nccl"}, "What carries the all-reduce");
  return [transport](const cli::Terminal& /*terminal*/) { return run(*transport); };
}

}  // namespace tally::verbs
