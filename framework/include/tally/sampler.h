#pragma once

#include <tally/hook.h>
#include <tally/types.h>

#include <optional>

namespace tally {

class StateReader;
class StateWriter;

/// Decides which examples feed each window. One a recipe (`[sampler]`). How large a window is says
/// the host's section `[window]`, see Context::window().
///
/// Knows shards, never ranks: every rank asks its own copy and must get the same plan, which the
/// host checks window by window.
class Sampler : public Hook {
 public:
  /// The training split. Called once, before the first plan or load_state. Throws ConfigError or
  /// DataError when the split is too small for what is asked. [before the loader starts]
  virtual void prepare(const ExampleTable& examples) = 0;

  /// Plan of the next window: all shards, in order. nullopt: no data left, and the run ends with
  /// the window before. Called for consecutive windows; draws on from the sampler's state and never
  /// recomputes earlier ones. [loader, every rank]
  virtual std::optional<WindowPlan> plan(int64_t window) = 0;

  /// Everything that later plans depend on. The host takes a snapshot after each plan, so that a
  /// checkpoint holds the state after the last finished window and nothing that was drawn ahead.
  /// [before the loader starts, then loader]
  virtual void save_state(StateWriter& writer) const = 0;

  /// Continues as if the plans before the snapshot had been drawn here. Throws DataError when the
  /// state does not fit. [before the loader starts]
  virtual void load_state(const StateReader& reader) = 0;
};

}  // namespace tally
