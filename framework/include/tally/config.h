#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

/// One section of the resolved recipe, as a hook reads it.
///
/// Read every option in the hook's constructor: a key that nobody has read by then is reported to
/// the user as unknown, and a fallback that was used is written into the resolved recipe. Each
/// getter throws ConfigError, naming file, line and section, when the value has another type, and
/// also when the key is absent and no fallback was given.
///
/// Threads: getters in the constructor, reject anywhere. Owner: the host; lives as long as the
/// hook.
class Config {
 public:
  virtual ~Config() = default;

  virtual bool has(std::string_view key) const = 0;
  /// A TOML integer. 2.0 is not one.
  virtual int64_t integer(std::string_view key,
                          std::optional<int64_t> fallback = std::nullopt) const = 0;
  /// A TOML float or integer, finite.
  virtual double number(std::string_view key,
                        std::optional<double> fallback = std::nullopt) const = 0;
  virtual bool boolean(std::string_view key, std::optional<bool> fallback = std::nullopt) const = 0;
  virtual std::string text(std::string_view key,
                           std::optional<std::string> fallback = std::nullopt) const = 0;
  /// A file or folder. A relative one starts at the folder of the file that wrote the key; from the
  /// command line, and as a fallback, at the current folder. Nothing need be there. Throws
  /// ConfigError for an empty text.
  virtual std::filesystem::path path(
      std::string_view key, std::optional<std::filesystem::path> fallback = std::nullopt) const = 0;
  /// An array of TOML integers.
  virtual std::vector<int64_t> integers(
      std::string_view key, std::optional<std::vector<int64_t>> fallback = std::nullopt) const = 0;

  /// Throws ConfigError: `FILE:LINE: SECTION.KEY = VALUE WHY`. Give `why` as the rest of the
  /// sentence: "must be at least 1".
  [[noreturn]] virtual void reject(std::string_view key, std::string_view why) const = 0;

  /// `integer`, rejected outside [minimum, maximum].
  int64_t integer_in(std::string_view key, std::optional<int64_t> fallback, int64_t minimum,
                     int64_t maximum) const {
    const int64_t value = integer(key, fallback);
    if (value < minimum || value > maximum) {
      reject(key,
             "must lie between " + std::to_string(minimum) + " and " + std::to_string(maximum));
    }
    return value;
  }
};

}  // namespace tally
