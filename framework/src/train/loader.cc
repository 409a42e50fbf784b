#include "train/loader.h"

#include "run/device.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <utility>

namespace tally::train {

using distributed::Agreement;
using distributed::ControlRecord;

Loader::Loader(const run::Job& job, distributed::Group& control, LoaderOptions options)
    : channel_(control, job.settings.shards, static_cast<int64_t>(options.loading.terms)),
      rank_(control.rank()),
      options_(std::move(options)),
      loading_(job, control.rank(), control.world(), options_.loading),
      reports_(options_.range.begin, control.rank(), options_.timeout),
      thread_([this](const std::stop_token& stop) {
        try {
          run::use_device(options_.loading.device);
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
    for (int64_t step = 0; step < loading_.evaluation_steps(window); ++step) {
      ControlRecord record;
      record.window = window;
      Prepared prepared = evaluation(window, step, record);
      // The trainer comes to the second step when it has run the window before.
      const int64_t reported = step == 0 ? window - 1 : window;
      if (!offer(std::move(prepared), std::move(record), reported, stop)) return;
    }
    ControlRecord record;
    record.window = window;
    Prepared prepared = this->window(window, record);
    if (!offer(std::move(prepared), std::move(record), window - 1, stop)) return;
  }
}

Prepared Loader::window(int64_t window, ControlRecord& record) {
  if (window >= options_.range.end) return {};
  std::optional<PreparedWindow> drawn = loading_.window(window, record);
  if (!drawn) return {};
  record.has_data = true;
  return {{}, std::move(*drawn)};
}

Prepared Loader::evaluation(int64_t window, int64_t step, ControlRecord& record) {
  record.step = step;
  record.has_data = true;
  return {{}, loading_.evaluation(window, step)};
}

bool Loader::offer(Prepared prepared, ControlRecord record, int64_t reported,
                   const std::stop_token& stop) {
  record.chain = loading_.chain();
  record.finished = reports_.take(reported, stop);
  wait_for_room(stop);
  if (stop.stop_requested()) return false;
  record.stop = options_.stop();
  prepared.agreement = channel_.exchange(record);
  const bool ends = !prepared.agreement.has_data || prepared.agreement.stop.requested();
  if (ends) prepared.work = EndOfRun{};
  hand_over(std::move(prepared));
  if (ends) close(record.window, stop);
  return !ends;
}

void Loader::close(int64_t window, const std::stop_token& stop) {
  ControlRecord closing;
  closing.window = window + 1;
  closing.chain = loading_.chain();
  closing.finished = reports_.take(window, stop);
  if (stop.stop_requested()) return;
  Agreement agreement = channel_.exchange(closing);
  const std::lock_guard lock(mutex_);
  final_ = std::move(agreement);
  changed_.notify_all();
}

void Loader::wait_for_room(const std::stop_token& stop) {
  constexpr size_t kReady = 2;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return ready_.size() < kReady; });
}

void Loader::hand_over(Prepared prepared) {
  const std::lock_guard lock(mutex_);
  ready_.push_back(std::move(prepared));
  changed_.notify_all();
}

Prepared Loader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || failure_; });
  // A failure concerns a later window. A rank that left before this one would leave the others
  // alone in its collectives, with a lost rank to report instead of the reason.
  if (ready_.empty()) std::rethrow_exception(failure_);
  Prepared prepared = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return prepared;
}

void Loader::finished(FinishedReport report) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }
  reports_.add(std::move(report));
}

Agreement Loader::final_exchange() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return final_.has_value() || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  return *final_;
}

}  // namespace tally::train
