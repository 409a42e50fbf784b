#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <string>

namespace tally::train {

/// JSON has no infinity and no NaN, and a person must still see them: they become the texts "inf",
/// "-inf" and "nan".
inline nlohmann::json number(double value) {
  if (std::isfinite(value)) return value;
  return fmt::format("{}", value);
}

/// What number() made, with four digits behind the point.
inline std::string shown_number(const nlohmann::json& value) {
  return value.is_number() ? fmt::format("{:.4f}", value.get<double>()) : value.get<std::string>();
}

}  // namespace tally::train
