#pragma once

#include <tally/error.h>
#include <tally/state_provider.h>

#include <map>
#include <string>
#include <variant>

namespace tally {

/// Named values in memory: what was written through the one interface is read through the other.
/// The host keeps a sampler's state in one until a checkpoint wants it; a test may stand one in for
/// a checkpoint.
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

  /// Writes every value under `prefix` + its name, in the names' order.
  void replay(StateWriter& writer, const std::string& prefix = "") const {
    for (const auto& [name, value] : values_) {
      std::visit([&, full = prefix + name](const auto& held) { put(writer, full, held); }, value);
    }
  }

 private:
  using Value = std::variant<at::Tensor, int64_t, std::string>;

  static void put(StateWriter& writer, const std::string& name, const at::Tensor& value) {
    writer.tensor(name, value);
  }
  static void put(StateWriter& writer, const std::string& name, int64_t value) {
    writer.integer(name, value);
  }
  static void put(StateWriter& writer, const std::string& name, const std::string& value) {
    writer.text(name, value);
  }

  void add(std::string_view name, Value value) {
    if (!values_.emplace(std::string(name), std::move(value)).second) {
      throw PluginError("the state \"" + std::string(name) +
                        "\" was written twice; give every value a name of its own");
    }
  }

  template <class T>
  const T& get(std::string_view name, const char* what) const {
    const auto found = values_.find(std::string(name));
    if (found == values_.end()) {
      throw DataError("the state has no value \"" + std::string(name) + "\"");
    }
    const T* value = std::get_if<T>(&found->second);
    if (value == nullptr) {
      throw DataError("the state \"" + std::string(name) + "\" is not " + what);
    }
    return *value;
  }

  std::map<std::string, Value> values_;
};

}  // namespace tally
