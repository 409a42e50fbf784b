#include "distributed/membership.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace tally::distributed {
namespace {

constexpr int64_t kDefaultPort = 29500;  // torchrun's
constexpr const char* kLoopback = "127.0.0.1";

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<int64_t> number(const char* name, int64_t minimum, int64_t maximum) {
  const std::optional<std::string> text = variable(name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc{} || stop != end || value < minimum || value > maximum) {
    throw ConfigError(
        fmt::format("the environment's {} is '{}', but an integer from {} to {} was expected; "
                    "correct it, or unset it to launch with --ranks",
                    name, *text, minimum, maximum));
  }
  return value;
}

int64_t required(const char* name, int64_t minimum, int64_t maximum, const char* because) {
  const std::optional<int64_t> value = number(name, minimum, maximum);
  if (!value) {
    throw ConfigError(fmt::format(
        "the environment sets {} but not {}; set both, or unset both to launch with --ranks",
        because, name));
  }
  return *value;
}

constexpr int64_t kMaxRanks = 1 << 20;

void place(Membership& self, const char* rank, const char* world, const char* local_rank,
           const char* local_world) {
  self.world = required(world, 1, kMaxRanks, rank);
  self.rank = required(rank, 0, self.world - 1, world);
  self.local_rank = number(local_rank, 0, kMaxRanks).value_or(self.rank);
  self.local_world = number(local_world, 1, kMaxRanks).value_or(self.world);
  self.address = variable("MASTER_ADDR").value_or(kLoopback);
  self.port = static_cast<uint16_t>(number("MASTER_PORT", 1, 65535).value_or(kDefaultPort));
}

Membership from_torchrun() {
  Membership self;
  place(self, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  self.board_file = variable("TALLY_BOARD").value_or("");
  self.launcher = self.board_file.empty() ? "torchrun" : "tally";
  self.external_store =
      !self.board_file.empty() || variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  self.run_id = fmt::format("{}/{}", variable("TORCHELASTIC_RUN_ID").value_or("run"),
                            variable("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  return self;
}

Membership from_slurm() {
  Membership self;
  place(self, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE");
  self.launcher = "Slurm";
  if (!variable("MASTER_ADDR")) {
    // Set by srun on every task to the address of the node that it was called from, which need not
    // run a task: several nodes must say.
    if (number("SLURM_STEP_NUM_NODES", 1, kMaxRanks).value_or(1) > 1) {
      throw ConfigError(
          "a Slurm step over several nodes needs MASTER_ADDR, the host of rank 0; "
          "export MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1) "
          "before srun");
    }
  }
  const int64_t job = number("SLURM_JOB_ID", 0, INT64_MAX).value_or(0);
  if (!variable("MASTER_PORT")) self.port = static_cast<uint16_t>(20000 + job % 20000);
  self.run_id = fmt::format("slurm-{}.{}", job, variable("SLURM_STEP_ID").value_or("0"));
  return self;
}

Membership from_mpi(const char* rank, const char* world, const char* local_rank,
                    const char* local_world) {
  Membership self;
  place(self, rank, world, local_rank, local_world);
  self.launcher = "MPI";
  self.run_id = "mpi";
  return self;
}

}  // namespace

std::optional<Membership> membership_from_environment() {
  if (variable("RANK") || variable("WORLD_SIZE")) return from_torchrun();
  // A batch script and an interactive allocation have no numbered step: there, --ranks launches.
  const std::optional<std::string> step = variable("SLURM_STEP_ID");
  if (step && step->find_first_not_of("0123456789") == std::string::npos &&
      variable("SLURM_STEP_NUM_TASKS")) {
    return from_slurm();
  }
  if (variable("OMPI_COMM_WORLD_SIZE")) {
    return from_mpi("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                    "OMPI_COMM_WORLD_LOCAL_SIZE");
  }
  if (variable("PMI_SIZE"))
    return from_mpi("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS");
  return std::nullopt;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.rfind("127.", 0) == 0;
}

}  // namespace tally::distributed
