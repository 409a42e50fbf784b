#include "run/plan_chain.h"

namespace tally::run {

Digest chain(const Digest& previous, const WindowPlan& plan) {
  Sha256 hash;
  hash.update(previous.bytes().data(), Digest::kBytes);
  hash.update(plan.window).update(static_cast<int64_t>(plan.shards.size()));
  for (const Shard& shard : plan.shards) {
    hash.update(static_cast<int64_t>(shard.size()));
    for (const Microbatch& microbatch : shard) {
      hash.update(static_cast<int64_t>(microbatch.size()));
      hash.update(microbatch.data(), microbatch.size() * sizeof(ExampleId));
    }
  }
  return hash.finish();
}

void WindowHistory::append(const WindowPlan& plan) {
  chain = run::chain(chain, plan);
  ++windows;
  last.push_back(plan);
  if (last.size() > kKept) last.pop_front();
}

}  // namespace tally::run
