#pragma once

#include <chrono>

namespace tally::train {

/// Counts from its making.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Adds the seconds until its end to `total`.
class AddSeconds {
 public:
  explicit AddSeconds(double& total) : total_(total) {}
  ~AddSeconds() { total_ += watch_.seconds(); }
  AddSeconds(const AddSeconds&) = delete;
  AddSeconds& operator=(const AddSeconds&) = delete;

 private:
  double& total_;
  Stopwatch watch_;
};

}  // namespace tally::train
