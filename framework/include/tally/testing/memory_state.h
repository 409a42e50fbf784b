#pragma once

#include <tally/error.h>
#include <tally/state_provider.h>

#include <map>
#include <string>
#include <variant>

namespace tally::testing {

/// A checkpoint's named values in memory: what was written through the one interface is read
/// through the other.
class MemoryState final : public StateWriter, public StateReader {
 public:
  void tensor(std::string_view name, const at::Tensor& value) override {
    add(name, value.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
  }
  void integer(std::string_view name, int64_t value) override { add(name, value); }
  void text(std::string_view name, std::string_view value) override {
    add(name, std::string(value));
  }

  bool has(std::string_view name) const override { return values_.contains(std::string(name)); }
  at::Tensor tensor(std::string_view name) const override {
    return get<at::Tensor>(name, "a tensor").clone();
  }
  int64_t integer(std::string_view name) const override { return get<int64_t>(name, "an integer"); }
  std::string text(std::string_view name) const override {
    return get<std::string>(name, "a text");
  }

 private:
  using Value = std::variant<at::Tensor, int64_t, std::string>;

  void add(std::string_view name, Value value) {
    if (!values_.emplace(std::string(name), std::move(value)).second) {
      throw PluginError("test: the state \"" + std::string(name) + "\" was written twice");
    }
  }

  template <class T>
  const T& get(std::string_view name, const char* what) const {
    const auto found = values_.find(std::string(name));
    if (found == values_.end()) {
      throw DataError("test: the state has no value \"" + std::string(name) + "\"");
    }
    const T* value = std::get_if<T>(&found->second);
    if (value == nullptr) {
      throw DataError("test: the state \"" + std::string(name) + "\" is not " + what);
    }
    return *value;
  }

  std::map<std::string, Value> values_;
};

}  // namespace tally::testing
