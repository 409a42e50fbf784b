#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tally::distributed {

/// This process's place in the run, as its launcher told it.
struct Membership {
  int64_t rank = 0;
  int64_t world = 1;
  int64_t local_rank = 0;   ///< Among the ranks of this host; picks the GPU.
  int64_t local_world = 1;  ///< Ranks on this host.
  std::string launcher;     ///< "tally", "torchrun", "Slurm" or "MPI".
  std::string address;      ///< Where the store listens.
  uint16_t port = 0;
  bool external_store =
      false;               ///< The launcher runs the store: every rank is a client, rank 0 too.
  std::string run_id;      ///< Keeps the keys of two runs over one store apart.
  std::string board_file;  ///< Board mapped by our launcher; empty under any other.
};

/// What the environment says: our launcher and torchrun (RANK, WORLD_SIZE, ...), a Slurm step, or
/// MPI (Open MPI, MPICH, Intel). nullopt when nobody launched this process as a rank. Throws
/// ConfigError naming the variable for a contract that is incomplete or contradicts itself.
std::optional<Membership> membership_from_environment();

/// Whether the address is of this host alone.
bool is_loopback(const std::string& address);

}  // namespace tally::distributed
