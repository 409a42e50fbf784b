#pragma once

#include "run/plan_chain.h"
#include "run/rank_session.h"

#include <tally/memory_state.h>
#include <tally/state_provider.h>

#include <memory>

namespace tally::run {

/// The run after its last finished window, as state providers see it.
class RunState final : public Run {
 public:
  /// Of a run from its first window. Before the sampler plans.
  explicit RunState(RankSession& session);

  /// The run goes on after `windows` windows of an earlier job. Before any provider loads.
  void resumed(int64_t windows) { history_.windows = windows; }
  /// The window has run; `sampler` is the sampler's state after its plan.
  void finished(const WindowPlan& plan, std::shared_ptr<const MemoryState> sampler);

  int64_t rank() const override { return session_.rank(); }
  int64_t world() const override { return session_.world(); }
  int64_t windows() const override { return history_.windows; }
  at::Device device() const override { return session_.device(); }
  void save_sampler(StateWriter& writer) const override;
  void load_sampler(const StateReader& reader) override;
  bool keyed_rng() const override { return session_.job().settings.keyed_rng; }

  const WindowHistory& history() const { return history_; }

 private:
  RankSession& session_;
  WindowHistory history_;
  std::shared_ptr<const MemoryState> sampler_;
};

}  // namespace tally::run
