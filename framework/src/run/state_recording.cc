#include "run/state_recording.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

namespace tally::run {

void StateRecording::add(std::string_view name, Value value) {
  if (!values_.emplace(std::string(name), std::move(value)).second) {
    throw PluginError(fmt::format(
        "a state writes its value '{}' twice; give every value a name of its own", name));
  }
}

void StateRecording::tensor(std::string_view name, const at::Tensor& value) {
  add(name, value.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
}
void StateRecording::integer(std::string_view name, int64_t value) { add(name, value); }
void StateRecording::text(std::string_view name, std::string_view value) {
  add(name, std::string(value));
}

bool StateRecording::has(std::string_view name) const { return values_.contains(name); }

template <class T>
const T& StateRecording::get(std::string_view name) const {
  const auto found = values_.find(name);
  const T* value = found == values_.end() ? nullptr : std::get_if<T>(&found->second);
  if (value == nullptr)
    throw DataError(
        fmt::format("the sampler's state has no value '{}' of the type asked for", name));
  return *value;
}

at::Tensor StateRecording::tensor(std::string_view name) const {
  return get<at::Tensor>(name).clone();
}
int64_t StateRecording::integer(std::string_view name) const { return get<int64_t>(name); }
std::string StateRecording::text(std::string_view name) const { return get<std::string>(name); }

void StateRecording::replay(StateWriter& writer, const std::string& prefix) const {
  for (const auto& [name, value] : values_) {
    const std::string full = prefix + name;
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) {
      writer.tensor(full, *tensor);
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      writer.integer(full, *integer);
    } else {
      writer.text(full, std::get<std::string>(value));
    }
  }
}

}  // namespace tally::run
