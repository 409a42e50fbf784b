#pragma once

#include <tally/state_provider.h>

#include <map>
#include <string>
#include <variant>

namespace tally::run {

/// A state in memory: what a sampler wrote after a plan, kept until a checkpoint wants it.
class StateRecording final : public StateWriter, public StateReader {
 public:
  void tensor(std::string_view name, const at::Tensor& value) override;
  void integer(std::string_view name, int64_t value) override;
  void text(std::string_view name, std::string_view value) override;

  bool has(std::string_view name) const override;
  at::Tensor tensor(std::string_view name) const override;
  int64_t integer(std::string_view name) const override;
  std::string text(std::string_view name) const override;

  /// Writes every value under `prefix` + its name.
  void replay(StateWriter& writer, const std::string& prefix) const;

 private:
  using Value = std::variant<at::Tensor, int64_t, std::string>;
  void add(std::string_view name, Value value);
  template <class T>
  const T& get(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;
};

/// The values of another reader whose names start with `prefix`.
class PrefixedReader final : public StateReader {
 public:
  PrefixedReader(const StateReader& reader, std::string prefix)
      : reader_(reader), prefix_(std::move(prefix)) {}
  bool has(std::string_view name) const override { return reader_.has(full(name)); }
  at::Tensor tensor(std::string_view name) const override { return reader_.tensor(full(name)); }
  int64_t integer(std::string_view name) const override { return reader_.integer(full(name)); }
  std::string text(std::string_view name) const override { return reader_.text(full(name)); }

 private:
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }
  const StateReader& reader_;
  std::string prefix_;
};

}  // namespace tally::run
