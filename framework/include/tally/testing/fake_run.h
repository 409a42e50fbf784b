#pragma once

#include <tally/state_provider.h>

namespace tally::testing {

/// A job of which a provider saves and restores a part. Its sampler is one number: the next window
/// to draw.
class FakeRun final : public Run {
 public:
  explicit FakeRun(int64_t rank = 0, int64_t world = 1, at::Device device = at::kCPU)
      : rank_(rank), world_(world), device_(device) {}

  int64_t rank() const override { return rank_; }
  int64_t world() const override { return world_; }
  int64_t windows() const override { return windows_; }
  at::Device device() const override { return device_; }

  void save_sampler(StateWriter& writer) const override {
    writer.integer("next_window", next_window_);
  }
  void load_sampler(const StateReader& reader) override {
    next_window_ = reader.integer("next_window");
  }

  bool keyed_rng() const override { return keyed_rng_; }
  void set_keyed_rng(bool keyed) { keyed_rng_ = keyed; }

  /// Moves the run on to the end of its next window.
  void finish_window() {
    ++windows_;
    ++next_window_;
  }
  /// What the sampler would draw next; load_sampler changes it, windows() stays.
  int64_t next_window() const { return next_window_; }

 private:
  int64_t rank_;
  int64_t world_;
  at::Device device_;
  bool keyed_rng_ = false;
  int64_t windows_ = 0;
  int64_t next_window_ = 0;
};

}  // namespace tally::testing
