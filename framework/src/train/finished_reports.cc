#include "train/finished_reports.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

namespace tally::train {

FinishedReports::FinishedReports(int64_t first, int64_t rank, std::chrono::milliseconds timeout)
    : next_(first), rank_(rank), timeout_(timeout) {}

void FinishedReports::add(FinishedReport report) {
  const std::lock_guard lock(mutex_);
  reports_.push_back(std::move(report));
  changed_.notify_all();
}

std::optional<distributed::FinishedWindow> FinishedReports::take(int64_t end,
                                                                 const std::stop_token& stop) {
  if (next_ >= end) return std::nullopt;
  FinishedReport report;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return !reports_.empty(); });
    if (stop.stop_requested()) return std::nullopt;
    report = std::move(reports_.front());
    reports_.pop_front();
  }
  if (report.window != next_++) throw std::logic_error("windows were reported out of order");
  if (report.copied) wait_for_device(report);
  const double* values = report.values.const_data_ptr<double>();
  return distributed::FinishedWindow{.window = report.window,
                                     .finite = std::isfinite(values[1]),
                                     .objective = values[0],
                                     .gradient_norm = values[1],
                                     .sums = {values + 2, values + report.values.numel()},
                                     .counts = std::move(report.counts)};
}

void FinishedReports::wait_for_device(const FinishedReport& report) const {
  // Not synchronize(): a collective whose peer is lost never ends, and nothing here could end that
  // wait.
  constexpr std::chrono::microseconds kPoll{50};
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  while (!report.copied->query()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      throw RankError(fmt::format(
          "rank {} waited {:g} s (run.timeout) for its GPU to finish window {}: another "
          "rank is lost or late in the reduction of the gradients",
          rank_, std::chrono::duration<double>(timeout_).count(), report.window));
    }
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace tally::train
