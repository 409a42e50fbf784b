#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>
#include <string>

namespace tally::report {

/// JSON has no infinity and no NaN, and a number that was never computed is none: both become null.
inline nlohmann::json number(std::optional<double> value) {
  if (value && std::isfinite(*value)) return *value;
  return nullptr;
}

/// What number() made, with four digits behind the point, or "-".
inline std::string shown_number(const nlohmann::json& value) {
  return value.is_number() ? fmt::format("{:.4f}", value.get<double>()) : "-";
}

}  // namespace tally::report
