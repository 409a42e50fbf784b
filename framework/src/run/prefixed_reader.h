#pragma once

#include <tally/state_provider.h>

#include <string>
#include <utility>

namespace tally::run {

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
