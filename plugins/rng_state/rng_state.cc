#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <tally/error.h>
#include <tally/plugin.h>

#include <mutex>

namespace tally {
namespace {

at::Tensor state_of(at::Generator generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_state(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

std::string rank_of_world(int64_t rank, int64_t world) {
  return "rank " + std::to_string(rank) + " of " + std::to_string(world);
}

/// Each rank's default random generators, uint8 [5056] for the CPU's and as the device defines it
/// for the GPU's. Needed to continue a run that draws random numbers, with dropout for instance,
/// as if it had never stopped. One copy a rank: ranks draw different numbers, so the state fits
/// the same rank of as many ranks only.
class RngState final : public StateProvider {
 public:
  explicit RngState(Context& /*context*/) {}

  std::string state_id() const override { return "rng_state/1"; }
  StateScope scope() const override { return StateScope::kRank; }

  void save(const Run& run, StateWriter& writer) const override {
    writer.integer("rank", run.rank());
    writer.integer("world", run.world());
    writer.tensor("cpu", state_of(at::detail::getDefaultCPUGenerator()));
    if (run.device().is_cuda()) {
      writer.tensor("cuda", state_of(at::globalContext().defaultGenerator(run.device())));
    }
  }

  void load(Run& run, const StateReader& reader) const override {
    const int64_t rank = reader.integer("rank");
    const int64_t world = reader.integer("world");
    if (rank != run.rank() || world != run.world()) {
      if (run.keyed_rng()) return;  // set anew before each pass: there is nothing to map
      throw DataError("the random state was saved by " + rank_of_world(rank, world) + " and is " +
                      "being restored on " + rank_of_world(run.rank(), run.world()) +
                      "; resume with as many ranks as the checkpoint has, or leave rng_state out");
    }
    if (reader.has("cuda") != run.device().is_cuda()) {
      throw DataError(std::string("the random state was saved ") +
                      (reader.has("cuda") ? "with" : "without") +
                      " a CUDA generator and is being restored on " + run.device().str() +
                      "; resume on the kind of device that the checkpoint was written on");
    }
    set_state(at::detail::getDefaultCPUGenerator(), reader.tensor("cpu"));
    if (run.device().is_cuda()) {
      set_state(at::globalContext().defaultGenerator(run.device()), reader.tensor("cuda"));
    }
  }
};

}  // namespace
}  // namespace tally

TALLY_PLUGIN("rng_state", "0.1.0", tally::hook<tally::RngState>("rng_state"))
