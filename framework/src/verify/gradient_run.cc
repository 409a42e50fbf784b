#include "verify/gradient_run.h"

#include "train/divisor_check.h"
#include "train/trainer.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

namespace tally::verify {
namespace {

using run::RankSession;

/// Follows the accumulated gradient through the passes of each window; updates nothing.
class Capture final : public train::Observer {
 public:
  Capture(RankSession& session, GradientSet& set) : session_(session), set_(set) {}

  void after_pass(const Pass& pass) override {
    if (session_.world() > 1 || pass.shard < 0) return;
    if (pass.index == 0) by_shard_.assign(static_cast<size_t>(set_.shards), at::Tensor());
    by_shard_[static_cast<size_t>(pass.shard)] = flat();
    last_shard_ = static_cast<size_t>(pass.shard);
  }

  bool after_reduction(int64_t window) override {
    WindowGradient gradient;
    gradient.window = window;
    for (const NamedTensor& named : session_.parameters().named_gradients()) {
      gradient.total.push_back(
          {named.name, named.tensor.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true)});
    }
    gradient.by_shard = shares_of_shards();
    session_.require_equal_digest(run::digest_of(gradient.total),
                                  fmt::format("the reduced gradient of window {}", window));
    set_.windows.push_back(std::move(gradient));
    return false;
  }

  void on_metrics(const train::WindowMetrics& metrics) override {
    for (WindowGradient& window : set_.windows) {
      if (window.window == metrics.window) window.counts_by_rank = metrics.counts_by_rank;
    }
  }

 private:
  /// Gradients are summed shard by shard, so after a shard's last pass they are its share; after
  /// the window's last pass they are the total.
  std::vector<at::Tensor> shares_of_shards() {
    std::vector<at::Tensor> shares = std::move(by_shard_);
    for (size_t shard = 0; shard < shares.size(); ++shard) {
      if (!shares[shard].defined()) shares[shard] = at::zeros_like(shares[last_shard_]);
    }
    for (size_t shard = 0; shard < shares.size(); ++shard) {
      if (shard != last_shard_) shares[last_shard_] = shares[last_shard_] - shares[shard];
    }
    return shares;
  }

  at::Tensor flat() const {
    std::vector<at::Tensor> parts;
    for (const NamedTensor& named : session_.parameters().named_gradients())
      parts.push_back(named.tensor.reshape({-1}));
    return at::cat(parts).to(at::kCPU);
  }

  RankSession& session_;
  GradientSet& set_;
  size_t last_shard_ = 0;
  std::vector<at::Tensor> by_shard_;
};

}  // namespace

GradientSet compute_gradients(RankSession& session, int64_t windows) {
  const run::Job& job = session.job();
  GradientSet set;
  set.recipe = job.settings.name;
  set.digest = job.recipe.digest();
  set.data = sha256(session.data_lock());
  set.world = session.world();
  set.shards = job.settings.shards;
  Capture capture(session, set);
  const int64_t divisor = train::measure_divisor(session);
  run::TrainingState state(session);
  train::Trainer trainer(session, state, divisor, capture, {});
  trainer.run_until(windows);
  if (static_cast<int64_t>(set.windows.size()) != windows) {
    throw DataError(
        fmt::format("the data of recipe '{}' end too early: windows asked for {}, drawn {}",
                    job.settings.name, windows, set.windows.size()));
  }
  const run::WindowHistory& history = state.position().history();
  set.chain = history.chain;
  if (!history.last.empty() && !history.last.front().shards.empty()) {
    set.accumulation = static_cast<int64_t>(history.last.front().shards.front().size());
  }
  return set;
}

}  // namespace tally::verify
