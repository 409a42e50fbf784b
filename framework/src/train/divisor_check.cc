#include "train/divisor_check.h"

#include "distributed/gradient_buckets.h"
#include "report/numbers.h"
#include "train/pass.h"
#include "train/policy_sync.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <array>
#include <cmath>
#include <numeric>

namespace tally::train {
namespace {

/// What the passes add on rank r, times r + 1: two shards of two passes each. No two sets of passes
/// add up to the same, so that a policy which forgets one and doubles another does not get through.
constexpr std::array<double, 4> kIncrements = {1, 2, 4, 8};
constexpr int64_t kPassesOfShard = 2;

/// Reaches every element of every parameter with the gradient `value`, also where one is Inf or
/// NaN.
at::Tensor uniform_loss(const distributed::FlatParameters& parameters, double value) {
  at::Tensor loss = at::zeros({}, parameters.values().options());
  for (const NamedTensor& parameter : parameters.named())
    loss = loss + parameter.tensor.sum() * value;
  return loss;
}

void run_window(run::RankSession& session, int64_t divisor) {
  distributed::FlatParameters& parameters = session.parameters();
  distributed::GradientBuckets buckets(parameters, session.groups().gradients,
                                       session.job().settings.bucket_bytes, divisor);
  PolicySync sync(parameters, buckets, session.groups().gradients);
  PassParts parts{session.job().policy, sync, buckets, session.board()};
  PhaseTimes times;
  Pass pass{.window = 0, .index = 0, .count = static_cast<int64_t>(kIncrements.size())};
  for (; pass.index < pass.count; ++pass.index) {
    pass.shard = session.rank() + session.world() * (pass.index / kPassesOfShard);
    pass.last_of_shard = pass.index % kPassesOfShard + 1 == kPassesOfShard;
    const double value =
        kIncrements[static_cast<size_t>(pass.index)] * static_cast<double>(session.rank() + 1);
    run_pass(
        parts, pass, [&] { return uniform_loss(parameters, value); }, times);
    if (pass.last_of_shard && !pass.last()) buckets.end_shard();
  }
  session.job().policy.call([&](SyncPolicy& policy) { policy.after_window(sync); });
}

/// Every pass and every rank may round once: small integers are exact in single precision, but not
/// in half. Far below the 1 / world by which a wrong divisor shows.
double tolerance(const run::RankSession& session, at::ScalarType dtype) {
  const double eps = dtype == at::kDouble     ? 0x1p-52
                     : dtype == at::kFloat    ? 0x1p-23
                     : dtype == at::kBFloat16 ? 0x1p-7
                                              : 0x1p-10;
  return eps * static_cast<double>(session.world() + static_cast<int64_t>(kIncrements.size()));
}

/// Smallest and largest value of the gradients on every rank, [world, 2]. Shared, so that all ranks
/// judge alike: one of them may hold what it should by chance.
at::Tensor measured(run::RankSession& session) {
  const at::Tensor gradients = session.parameters().gradients();
  const at::Tensor mine = at::stack({gradients.min(), gradients.max()}).to(at::kCPU, at::kDouble);
  return session.groups().state.gather(mine, distributed::CollectiveKind::kComparison, 0);
}

}  // namespace

int64_t measure_divisor(run::RankSession& session) {
  const int64_t world = session.world();
  const int64_t divisor = session.job().policy.call([&](SyncPolicy& policy) {
    const int64_t value = policy.divisor(world);
    if (value < 1)
      throw PluginError(fmt::format("has divisor {} for {}, but at least 1 was expected", value,
                                    report::counted(world, "rank")));
    return value;
  });
  run_window(session, divisor);
  const at::Tensor held = measured(session);
  const double allowed = tolerance(session, session.parameters().values().scalar_type());
  session.parameters().clear_gradients();
  const std::string identity = session.job().policy.identity().text();
  session.job().policy =
      session.job().factory->create<SyncPolicy>(session.job().recipe.section("sync_policy"));
  const double sum = std::accumulate(kIncrements.begin(), kIncrements.end(), 0.0);
  const double expected =
      sum * static_cast<double>(world * (world + 1)) / 2.0 / static_cast<double>(divisor);
  for (int64_t rank = 0; rank < world; ++rank) {
    const double low = held[rank][0].item<double>();
    const double high = held[rank][1].item<double>();
    if (std::abs(low - expected) <= allowed * expected &&
        std::abs(high - expected) <= allowed * expected)
      continue;
    throw PluginError(fmt::format(
        "{} says that it divides the sum over {} by {}, so a window of two shards in which "
        "every gradient of rank r adds up to {:g} * (r + 1) must leave {:g}, but rank {} holds {}; "
        "correct its divisor(), or what it does in each pass (see Sync::gradients)",
        identity, report::counted(world, "rank"), divisor, sum, expected, rank,
        low == high ? fmt::format("{:g}", low) : fmt::format("{:g} to {:g}", low, high)));
  }
  return divisor;
}

}  // namespace tally::train
