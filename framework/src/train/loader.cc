#include "train/loader.h"

#include "train/device.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <cmath>

namespace tally::train {
namespace {

using distributed::Agreement;
using distributed::ControlRecord;
using distributed::FinishedWindow;

void pin(Batch& batch) {
  for (NamedTensor& input : batch.inputs) input.tensor = input.tensor.pin_memory();
  for (Term& term : batch.terms) {
    term.weights = term.weights.pin_memory();
    if (term.documents) term.documents = term.documents->pin_memory();
  }
}

void require_shape(const WindowPlan& plan, int64_t window, int64_t shards) {
  if (plan.window == window && static_cast<int64_t>(plan.shards.size()) == shards) return;
  throw PluginError(fmt::format(
      "planned window {} with {} shards, but window {} with {} (sampler.shards) was asked for",
      plan.window, plan.shards.size(), window, shards));
}

void require_counts(const std::vector<int64_t>& counts, size_t terms) {
  bool valid = counts.size() == terms;
  for (const int64_t count : counts) valid = valid && count >= 0;
  if (!valid) {
    throw PluginError(
        fmt::format("counted {} terms of {}, or a negative number; count every term of the batch",
                    counts.size(), terms));
  }
}

}  // namespace

Loader::Loader(const Job& job, distributed::Group& control, LoaderOptions options)
    : job_(job),
      channel_(control, job.settings.shards, static_cast<int64_t>(options.terms)),
      rank_(control.rank()),
      world_(control.world()),
      options_(std::move(options)),
      chain_(options_.chain),
      thread_([this](const std::stop_token& stop) {
        try {
          use_device(options_.device);
          work(stop);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          failure_ = std::current_exception();
          changed_.notify_all();
          options_.on_failure(failure_);
        }
      }) {}

Loader::~Loader() = default;

void Loader::work(const std::stop_token& stop) {
  for (int64_t window = options_.range.begin;; ++window) {
    plugin::set_place(fmt::format("at window {}, rank {}", window, rank_));
    PreparedWindow prepared;
    prepared.agreement.window = window;
    ControlRecord record;
    record.window = window;
    if (window < options_.range.end) plan_next(prepared);
    record.has_data = !prepared.plan.shards.empty();
    if (record.has_data) load_shards(prepared.plan, prepared, record);
    record.chain = chain_;
    record.finished = wait_for_report(window - 2, stop);
    record.stop_signal = options_.stop_signal();
    if (stop.stop_requested()) return;
    prepared.agreement = channel_.exchange(record);
    prepared.last = !prepared.agreement.has_data || prepared.agreement.stop_signal != 0;
    const bool last = prepared.last;
    hand_over(std::move(prepared));
    if (!last) continue;

    ControlRecord closing;
    closing.window = window + 1;
    closing.chain = chain_;
    closing.finished = wait_for_report(window - 1, stop);
    if (stop.stop_requested()) return;
    Agreement agreement = channel_.exchange(closing);
    const std::lock_guard lock(mutex_);
    final_ = std::move(agreement);
    changed_.notify_all();
    return;
  }
}

void Loader::plan_next(PreparedWindow& prepared) {
  const int64_t window = prepared.agreement.window;
  auto state = std::make_shared<StateRecording>();
  std::optional<WindowPlan> plan = job_.sampler.call([&](Sampler& sampler) {
    std::optional<WindowPlan> drawn = sampler.plan(window);
    if (drawn) require_shape(*drawn, window, job_.settings.shards);
    sampler.save_state(*state);
    return drawn;
  });
  if (!plan) return;
  chain_ = chain(chain_, *plan);
  prepared.plan = std::move(*plan);
  prepared.sampler_state = std::move(state);
}

void Loader::load_shards(const WindowPlan& plan, PreparedWindow& prepared, ControlRecord& record) {
  for (int64_t shard = rank_; shard < job_.settings.shards; shard += world_) {
    const Shard& microbatches = plan.shards[static_cast<size_t>(shard)];
    distributed::ShardRecord entry{shard, static_cast<int64_t>(microbatches.size()),
                                   std::vector<int64_t>(options_.terms, 0)};
    for (size_t m = 0; m < microbatches.size(); ++m) {
      LoadedPass pass{shard, static_cast<int64_t>(m), {}};
      if (!microbatches[m].empty()) {
        pass.batch = job_.task.call(
            [&](const Task& task) { return task.load("train", microbatches[m], std::nullopt); });
        const std::vector<int64_t> counts = job_.reducer.call([&](const LossReducer& reducer) {
          std::vector<int64_t> counted = reducer.count(pass.batch);
          require_counts(counted, options_.terms);
          return counted;
        });
        for (size_t t = 0; t < options_.terms; ++t) entry.counts[t] += counts[t];
        if (!options_.device.is_cpu()) pin(pass.batch);
      }
      prepared.passes.push_back(std::move(pass));
    }
    record.shards.push_back(std::move(entry));
  }
}

std::optional<FinishedWindow> Loader::wait_for_report(int64_t window, const std::stop_token& stop) {
  if (window < options_.range.begin) return std::nullopt;
  FinishedReport report;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return !reports_.empty(); });
    if (stop.stop_requested()) return std::nullopt;
    report = std::move(reports_.front());
    reports_.pop_front();
  }
  if (report.window != window) throw std::logic_error("windows were reported out of order");
  if (report.copied) wait_for_device(report);
  const double* values = report.values.const_data_ptr<double>();
  FinishedWindow finished{window, std::isfinite(values[1]), values[0], values[1],
                          {},     std::move(report.counts)};
  finished.sums.assign(values + 2, values + 2 + options_.terms);
  return finished;
}

void Loader::wait_for_device(const FinishedReport& report) const {
  // Not synchronize(): a collective whose peer is lost never ends, and nothing here could end that
  // wait.
  constexpr std::chrono::microseconds kPoll{50};
  const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
  while (!report.copied->query()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      throw RankError(fmt::format(
          "rank {} waited {:g} s (run.timeout) for its GPU to finish window {}: another rank is "
          "lost or late in the "
          "reduction of the gradients",
          rank_, std::chrono::duration<double>(options_.timeout).count(), report.window));
    }
    std::this_thread::sleep_for(kPoll);
  }
}

void Loader::hand_over(PreparedWindow prepared) {
  const std::lock_guard lock(mutex_);
  ready_.push_back(std::move(prepared));
  changed_.notify_all();
}

PreparedWindow Loader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || failure_; });
  // A failure concerns a later window. A rank that left before this one would leave the others
  // alone in its collectives, with a lost rank to report instead of the reason.
  if (ready_.empty()) std::rethrow_exception(failure_);
  PreparedWindow prepared = std::move(ready_.front());
  ready_.pop_front();
  return prepared;
}

void Loader::finished(FinishedReport report) {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  reports_.push_back(std::move(report));
  changed_.notify_all();
}

Agreement Loader::final_exchange() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return final_.has_value() || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  return *final_;
}

}  // namespace tally::train
