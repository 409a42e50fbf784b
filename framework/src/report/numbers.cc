#include "report/numbers.h"

#include <fmt/format.h>

#include <cmath>

namespace tally::report {
namespace {

std::string positive_seconds(double value) {
  // The bounds are where rounding would reach the next unit: 59.996 s is a minute, not "60.00 s".
  if (value < 0.9995e-3) return fmt::format("{:.0f} us", value * 1e6);
  if (value < 0.99995) return fmt::format("{:.1f} ms", value * 1e3);
  if (value < 59.995) return fmt::format("{:.2f} s", value);
  const auto whole = static_cast<int64_t>(std::llround(value));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  const int64_t minutes = (whole + 30) / 60;
  return fmt::format("{} h {:02} min", grouped(minutes / 60), minutes % 60);
}

}  // namespace

std::string grouped(int64_t value) {
  std::string text = fmt::format("{}", value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t place = text.size(); place > first + 3;) {
    place -= 3;
    text.insert(place, 1, ',');
  }
  return text;
}

std::string scientific(double value) { return value == 0.0 ? "0" : fmt::format("{:.3e}", value); }

std::string seconds(double value) {
  if (!std::isfinite(value) || std::fabs(value) > 1e15) return fmt::format("{:.3g} s", value);
  if (value == 0.0) return "0 s";
  return value < 0 ? "-" + positive_seconds(-value) : positive_seconds(value);
}

std::string bytes(int64_t value) {
  if (std::llabs(value) < 1024) return fmt::format("{} B", value);
  double scaled = static_cast<double>(value);
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}) {
    // 1023.95 KiB would print as "1024.0 KiB".
    if (std::fabs(scaled) < 1023.95) break;
    scaled /= 1024;
    unit = larger;
  }
  return fmt::format("{:.1f} {}", scaled, unit);
}

std::string counted(int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace tally::report
