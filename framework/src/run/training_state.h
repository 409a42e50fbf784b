#pragma once

#include "checkpoint/lineage.h"
#include "run/optimizer.h"
#include "run/rank_session.h"
#include "run/run_state.h"

#include <memory>

namespace tally::run {

/// What training changes, and a checkpoint holds: the weights, the optimizer, how far the run has
/// come, and from where. Made when the ranks have met and the model is equal on all of them;
/// whoever trains, saves or restores gets it and nothing that stands above it.
class TrainingState {
 public:
  /// Of a run before its first window: seeds the generators too. The session outlives it.
  /// [trainer, every rank]
  explicit TrainingState(RankSession& session);

  distributed::FlatParameters& parameters() { return session_.parameters(); }
  Optimizer& optimizer() { return *optimizer_; }
  RunState& position() { return position_; }
  const RunState& position() const { return position_; }
  /// Of a run that began here, until a restored checkpoint says more.
  checkpoint::Lineage& lineage() { return lineage_; }
  /// Parameters and buffers under their names: what a checkpoint calls the model.
  std::vector<NamedTensor> model();

 private:
  RankSession& session_;
  std::unique_ptr<Optimizer> optimizer_;
  RunState position_;
  checkpoint::Lineage lineage_;
};

}  // namespace tally::run
