#include "train/divisor_check.h"

#include "distributed/gradient_buckets.h"
#include "train/policy_sync.h"
#include "train/window.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <cmath>

namespace tally::train {
namespace {

/// Two roundings of single precision: the ranks' small integers add up exactly, and only the
/// division rounds.
constexpr double kRelativeTolerance = 1e-6;

void run_window(run::RankSession& session, PolicySync& sync,
                distributed::GradientBuckets& buckets) {
  const Pass pass{0, 0, 1};
  session.job().policy.call([&](SyncPolicy& policy) { policy.before_forward(pass, sync); });
  const at::Tensor loss = zero_loss(session.parameters());
  session.job().policy.call([&](SyncPolicy& policy) { policy.before_backward(pass, sync); });
  loss.backward();
  buckets.finish(pass.last());
  session.job().policy.call([&](SyncPolicy& policy) {
    policy.after_backward(pass, sync);
    policy.after_window(sync);
  });
}

/// Smallest and largest value of the gradients on every rank, [world, 2]. Shared, so that all ranks
/// judge alike: one of them may hold what it should by chance.
at::Tensor measured(run::RankSession& session) {
  const at::Tensor gradients = session.parameters().gradients();
  const at::Tensor mine =
      at::stack({gradients.min(), gradients.max()}).to(at::kCPU, at::kDouble).view({1, 2});
  if (session.world() == 1) return mine;
  at::Tensor all = at::empty({session.world(), 2}, mine.options());
  session.groups()
      .state.all_gather(all, mine, distributed::CollectiveKind::kStateGather, 0)
      ->wait();
  return all;
}

}  // namespace

int64_t measure_divisor(run::RankSession& session) {
  const int64_t world = session.world();
  const int64_t divisor = session.job().policy.call([&](SyncPolicy& policy) {
    const int64_t value = policy.divisor(world);
    if (value < 1)
      throw PluginError(
          fmt::format("has divisor {} for {} ranks, but at least 1 was expected", value, world));
    return value;
  });
  distributed::FlatParameters& parameters = session.parameters();
  {
    distributed::GradientBuckets buckets(parameters, session.groups().gradients,
                                         session.job().settings.bucket_bytes, divisor);
    PolicySync sync(parameters, buckets, session.groups().gradients);
    parameters.gradients().fill_(static_cast<double>(session.rank() + 1));
    run_window(session, sync, buckets);
  }
  const at::Tensor held = measured(session);
  parameters.clear_gradients();
  const std::string identity = session.job().policy.identity().text();
  session.job().policy =
      session.job().factory->create<SyncPolicy>(session.job().recipe.section("sync_policy"));
  const double expected =
      static_cast<double>(world * (world + 1)) / 2.0 / static_cast<double>(divisor);
  for (int64_t rank = 0; rank < world; ++rank) {
    const double low = held[rank][0].item<double>();
    const double high = held[rank][1].item<double>();
    const double tolerance = kRelativeTolerance * expected;
    if (std::abs(low - expected) <= tolerance && std::abs(high - expected) <= tolerance) continue;
    throw PluginError(fmt::format(
        "{} says that it divides the sum over {} ranks by {}, so gradients of rank + 1 must become "
        "{:g}, but rank {} holds {}; correct its divisor(), or what it does",
        identity, world, divisor, expected, rank,
        low == high ? fmt::format("{:g}", low) : fmt::format("{:g} to {:g}", low, high)));
  }
  return divisor;
}

}  // namespace tally::train
