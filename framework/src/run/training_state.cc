#include "run/training_state.h"

#include "run/conditions.h"
#include "run/randomness.h"

namespace tally::run {

TrainingState::TrainingState(RankSession& session)
    : session_(session),
      optimizer_(make_optimizer(session.job().optimizer, session.parameters())),
      position_(session),
      lineage_{{conditions_of(session.job(), session.data_lock()), 0}} {
  seed_generators(stream_seed(session.job().settings.seed, session.rank()), session.device());
}

std::vector<NamedTensor> TrainingState::model() { return session_.model(); }

}  // namespace tally::run
