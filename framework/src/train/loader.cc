#include "train/loader.h"

#include "run/device.h"
#include "run/losses.h"

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
      "planned window {} with {} shards, but window {} with {} (window.shards) was asked for",
      plan.window, plan.shards.size(), window, shards));
}

}  // namespace

Loader::Loader(const run::Job& job, distributed::Group& control, LoaderOptions options)
    : job_(job),
      channel_(control, job.settings.shards, static_cast<int64_t>(options.terms)),
      rank_(control.rank()),
      world_(control.world()),
      options_(std::move(options)),
      chain_(options_.chain),
      next_report_(options_.range.begin),
      thread_([this](const std::stop_token& stop) {
        try {
          run::use_device(options_.device);
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
    for (int64_t step = 0; step < evaluation_steps(window); ++step) {
      if (!offer(evaluation_item(window, step), stop)) return;
    }
    if (!offer(window_item(window), stop)) return;
  }
}

int64_t Loader::evaluation_steps(int64_t window) const {
  if (!options_.evaluation || window == 0 || window % job_.settings.evaluate_every != 0) return 0;
  return (options_.evaluation->size() + world_ - 1) / world_;
}

Loader::Item Loader::window_item(int64_t window) {
  Item item;
  if (window < options_.range.end) plan_next(window, item.prepared);
  item.record.has_data = !item.prepared.plan.shards.empty();
  if (item.record.has_data) load_shards(item.prepared.plan, item.prepared, item.record);
  item.record.window = window;
  item.reported = window - 1;
  return item;
}

Loader::Item Loader::evaluation_item(int64_t window, int64_t step) {
  const int64_t batch = step * world_ + rank_;
  // A rank without a batch of its own takes the first: every rank then does the same.
  const bool own = batch < options_.evaluation->size();
  EvaluationPass pass{step, evaluation_steps(window), {}, {}};
  pass.batch = job_.task.call([&](const Task& task) {
    return task.load(options_.evaluation->split, options_.evaluation->examples(own ? batch : 0),
                     std::nullopt);
  });
  pass.counts = run::count(job_.reducer, pass.batch, options_.terms);
  pin_for_device(pass.batch);
  Item item;
  item.prepared.evaluation = std::move(pass);
  item.record.window = window;
  item.record.step = step;
  item.record.has_data = true;
  // The trainer comes to the second step when it has run the window before.
  item.reported = step == 0 ? window - 1 : window;
  return item;
}

bool Loader::offer(Item item, const std::stop_token& stop) {
  item.record.chain = chain_;
  item.record.finished = next_report(item.reported, stop);
  wait_for_room(stop);
  if (stop.stop_requested()) return false;
  item.record.stop_signal = options_.stop_signal();
  PreparedWindow& prepared = item.prepared;
  prepared.agreement = channel_.exchange(item.record);
  prepared.last = !prepared.agreement.has_data || prepared.agreement.stop_signal != 0;
  const bool last = prepared.last;
  const int64_t window = item.record.window;
  hand_over(std::move(prepared));
  if (last) close(window, stop);
  return !last;
}

void Loader::close(int64_t window, const std::stop_token& stop) {
  ControlRecord closing;
  closing.window = window + 1;
  closing.chain = chain_;
  closing.finished = next_report(window, stop);
  if (stop.stop_requested()) return;
  Agreement agreement = channel_.exchange(closing);
  const std::lock_guard lock(mutex_);
  final_ = std::move(agreement);
  changed_.notify_all();
}

void Loader::plan_next(int64_t window, PreparedWindow& prepared) {
  auto state = std::make_shared<MemoryState>();
  std::optional<WindowPlan> plan = job_.sampler.call([&](Sampler& sampler) {
    std::optional<WindowPlan> drawn = sampler.plan(window);
    if (drawn) require_shape(*drawn, window, job_.settings.shards);
    sampler.save_state(*state);
    return drawn;
  });
  if (!plan) return;
  chain_ = run::chain(chain_, *plan);
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
        const std::vector<int64_t> counts = run::count(job_.reducer, pass.batch, options_.terms);
        for (size_t t = 0; t < options_.terms; ++t) entry.counts[t] += counts[t];
        pin_for_device(pass.batch);
      }
      prepared.passes.push_back(std::move(pass));
    }
    record.shards.push_back(std::move(entry));
  }
}

std::optional<FinishedWindow> Loader::next_report(int64_t end, const std::stop_token& stop) {
  if (next_report_ >= end) return std::nullopt;
  FinishedReport report;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return !reports_.empty(); });
    if (stop.stop_requested()) return std::nullopt;
    report = std::move(reports_.front());
    reports_.pop_front();
  }
  const int64_t window = next_report_++;
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

void Loader::pin_for_device(Batch& batch) const {
  if (!options_.device.is_cpu()) pin(batch);
}

void Loader::wait_for_room(const std::stop_token& stop) {
  constexpr size_t kAhead = 2;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return ready_.size() < kAhead; });
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
  changed_.notify_all();
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
