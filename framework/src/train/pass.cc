#include "train/pass.h"

#include "train/stopwatch.h"

namespace tally::train {

using distributed::Phase;

void run_pass(PassParts& parts, const Pass& pass, const std::function<at::Tensor()>& forward,
              PhaseTimes& times) {
  const auto tell = [&](auto hook) {
    parts.policy.call([&](SyncPolicy& policy) { (policy.*hook)(pass, parts.sync); });
  };
  at::Tensor loss;
  {
    const AddSeconds add(times.forward);
    parts.board.phase(Phase::kForward);
    tell(&SyncPolicy::before_forward);
    loss = forward();
  }
  {
    const AddSeconds add(times.backward);
    parts.board.phase(Phase::kBackward);
    tell(&SyncPolicy::before_backward);
    loss.backward();
  }
  const AddSeconds add(times.reduce);
  parts.board.phase(Phase::kReducing);
  parts.buckets.finish(pass.last());
  tell(&SyncPolicy::after_backward);
}

}  // namespace tally::train
