#include "distributed/control_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <bit>
#include <cstring>

namespace tally::distributed {
namespace {

constexpr size_t kChainWords = Digest::kBytes / sizeof(int64_t);
// window, step, has_data, stop and its signal, chain, finished window, finite, objective, gradient
// norm
constexpr size_t kPlanWords = 5;
constexpr size_t kFinishedWords = 4;
constexpr size_t kHeader = kPlanWords + kChainWords + kFinishedWords;
constexpr int64_t kNone = -1;

std::string describe(const ControlRecord& record) {
  return fmt::format("window {}{}, {}, chain {}", record.window,
                     record.step < 0 ? "" : fmt::format(", evaluation step {}", record.step),
                     record.has_data ? "data" : "no data left", record.chain.hex().substr(0, 16));
}

bool same_plan(const ControlRecord& a, const ControlRecord& b) {
  return a.window == b.window && a.step == b.step && a.has_data == b.has_data && a.chain == b.chain;
}

void require_same_plan(const std::vector<ControlRecord>& records) {
  std::vector<std::string> others;
  for (size_t rank = 1; rank < records.size(); ++rank) {
    if (!same_plan(records[rank], records[0])) {
      others.push_back(fmt::format("rank {} has {}", rank, describe(records[rank])));
    }
  }
  if (others.empty()) return;
  throw PluginError(
      fmt::format("the sampler's plans differ: rank 0 has {}; {}. A plan may depend on seed, data "
                  "and earlier plans, never on the rank",
                  describe(records[0]), fmt::join(others, "; ")));
}

}  // namespace

ControlChannel::ControlChannel(Group& group, int64_t shards, int64_t terms)
    : group_(group),
      shards_(shards),
      slots_((shards + group.world() - 1) / group.world()),
      terms_(static_cast<size_t>(terms)) {}

size_t ControlChannel::length() const {
  return kHeader + 2 * terms_ + static_cast<size_t>(slots_) * (2 + terms_);
}

std::vector<int64_t> ControlChannel::encode(const ControlRecord& record) const {
  std::vector<int64_t> values{record.window, record.step, record.has_data ? 1 : 0,
                              static_cast<int64_t>(record.stop.reason), record.stop.signal};
  std::array<int64_t, kChainWords> chain{};
  std::memcpy(chain.data(), record.chain.bytes().data(), Digest::kBytes);
  values.insert(values.end(), chain.begin(), chain.end());
  const FinishedWindow finished = record.finished.value_or(FinishedWindow{});
  values.push_back(finished.window);
  values.push_back(finished.finite ? 1 : 0);
  values.push_back(std::bit_cast<int64_t>(finished.objective));
  values.push_back(std::bit_cast<int64_t>(finished.gradient_norm));
  for (size_t t = 0; t < terms_; ++t) {
    values.push_back(record.finished ? std::bit_cast<int64_t>(finished.sums.at(t)) : 0);
    values.push_back(record.finished ? finished.counts.at(t) : 0);
  }
  for (const ShardRecord& shard : record.shards) {
    values.push_back(shard.shard);
    values.push_back(shard.microbatches);
    values.insert(values.end(), shard.counts.begin(), shard.counts.end());
  }
  if (values.size() > length())
    throw std::logic_error("a control record is longer than its run's records");
  values.resize(length(), kNone);
  return values;
}

ControlRecord ControlChannel::decode(const int64_t* values) const {
  ControlRecord record;
  record.window = values[0];
  record.step = values[1];
  record.has_data = values[2] != 0;
  record.stop = {static_cast<Stop::Reason>(values[3]), values[4]};
  std::array<uint8_t, Digest::kBytes> chain{};
  std::memcpy(chain.data(), values + kPlanWords, chain.size());
  record.chain = Digest(chain);
  const int64_t* next = values + kPlanWords + kChainWords;
  FinishedWindow finished{
      next[0], next[1] != 0, std::bit_cast<double>(next[2]), std::bit_cast<double>(next[3]), {},
      {}};
  next += kFinishedWords;
  for (size_t t = 0; t < terms_; ++t, next += 2) {
    finished.sums.push_back(std::bit_cast<double>(next[0]));
    finished.counts.push_back(next[1]);
  }
  if (finished.window != kNone) record.finished = finished;
  for (int64_t slot = 0; slot < slots_; ++slot, next += 2 + terms_) {
    if (next[0] == kNone) break;
    record.shards.push_back({next[0], next[1], {next + 2, next + 2 + terms_}});
  }
  return record;
}

Agreement ControlChannel::fold(const std::vector<ControlRecord>& records) const {
  require_same_plan(records);
  Agreement agreement;
  agreement.window = records[0].window;
  agreement.has_data = records[0].has_data;
  agreement.global_counts.assign(terms_, 0);
  for (const ControlRecord& record : records) {
    std::vector<int64_t> counts(terms_, 0);
    int64_t passes = 0;
    for (const ShardRecord& shard : record.shards) {
      passes += shard.microbatches;
      for (size_t t = 0; t < terms_; ++t) counts[t] += shard.counts[t];
    }
    for (size_t t = 0; t < terms_; ++t) agreement.global_counts[t] += counts[t];
    agreement.counts_by_rank.push_back(std::move(counts));
    agreement.passes_by_rank.push_back(passes);
    agreement.finished.push_back(record.finished);
    agreement.stop = agreed(agreement.stop, record.stop);
  }
  return agreement;
}

Agreement ControlChannel::exchange(const ControlRecord& record) {
  const std::vector<int64_t> mine = encode(record);
  const auto size = static_cast<int64_t>(mine.size());
  at::Tensor input = at::empty({size}, at::kLong);
  std::memcpy(input.data_ptr<int64_t>(), mine.data(), mine.size() * sizeof(int64_t));
  const at::Tensor all = group_.gather(input, CollectiveKind::kControlRecord, record.window);
  std::vector<ControlRecord> records;
  for (int64_t rank = 0; rank < group_.world(); ++rank)
    records.push_back(decode(all.const_data_ptr<int64_t>() + rank * size));
  return fold(records);
}

}  // namespace tally::distributed
