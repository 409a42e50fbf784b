#include <tally/plugin.h>

namespace tally {
namespace {

/// The sampler's position in the data. One copy a run: every rank draws the same plans, so any
/// number of ranks can continue from it.
class SamplerState final : public StateProvider {
 public:
  explicit SamplerState(Context& /*context*/) {}

  std::string state_id() const override { return "sampler_state/1"; }
  StateScope scope() const override { return StateScope::kRun; }
  void save(const Run& run, StateWriter& writer) const override { run.save_sampler(writer); }
  void load(Run& run, const StateReader& reader) const override { run.load_sampler(reader); }
};

}  // namespace
}  // namespace tally

TALLY_PLUGIN("sampler_state", "0.1.0", tally::hook<tally::SamplerState>("sampler_state"))
