#pragma once

#include <tally/hook.h>
#include <tally/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tally {

/// Named values that go into a checkpoint. Names are unique within a provider; a second value of
/// one name throws PluginError.
class StateWriter {
 public:
  virtual ~StateWriter() = default;
  /// Any dtype, shape and device; the values are copied before the call returns.
  virtual void tensor(std::string_view name, const at::Tensor& value) = 0;
  virtual void integer(std::string_view name, int64_t value) = 0;
  virtual void text(std::string_view name, std::string_view value) = 0;
};

/// Reads what a StateWriter wrote. Throws DataError naming file and value when it is absent or of
/// another type.
class StateReader {
 public:
  virtual ~StateReader() = default;
  virtual bool has(std::string_view name) const = 0;
  virtual at::Tensor tensor(std::string_view name) const = 0;  ///< On the CPU.
  virtual int64_t integer(std::string_view name) const = 0;
  virtual std::string text(std::string_view name) const = 0;
};

/// The running job, as a provider sees it, at the end of a window. [trainer]
class Run {
 public:
  virtual ~Run() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t world() const = 0;
  virtual int64_t windows() const = 0;  ///< Finished windows.
  virtual at::Device device() const = 0;

  /// The sampler's state after the last finished window, and the history of drawn windows (their
  /// number, the chain, the last 64 in full).
  virtual void save_sampler(StateWriter& writer) const = 0;
  virtual void load_sampler(const StateReader& reader) = 0;

  /// Whether rng = "keyed": the default generators are set anew before each pass, so that their
  /// state carries nothing from one window to the next.
  virtual bool keyed_rng() const = 0;
};

enum class StateScope {
  kRun,   ///< One copy, written by rank 0, readable by any number of ranks.
  kRank,  ///< One copy a rank.
};

/// Saves and restores a part of the run that is neither model nor optimizer. Any number a recipe
/// (`[[state]]`).
class StateProvider : public Hook {
 public:
  /// "NAME/REVISION", unique in the recipe; the revision changes when the encoding does, and a
  /// checkpoint with another id is refused.
  virtual std::string state_id() const = 0;
  virtual StateScope scope() const = 0;
  virtual void save(const Run& run, StateWriter& writer) const = 0;
  /// Throws DataError when the state does not fit this run. [every rank]
  virtual void load(Run& run, const StateReader& reader) const = 0;
};

}  // namespace tally
