#pragma once

#include <stdexcept>
#include <string>

/// The typed exceptions of tally. Each text is one sentence for a person: what was being done, both
/// values, where, what to do next. The type decides the exit code of the program; nobody matches on
/// texts.
namespace tally {

class __attribute__((visibility("default"))) Error : public std::runtime_error {
 public:
  Error(const std::string& sentence, int exit_code)
      : std::runtime_error(sentence), exit_code_(exit_code) {}
  /// Exit code of a program that ends by this error.
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

/// The command line, the recipe or its config cannot be used as written. Exit code 2.
class __attribute__((visibility("default"))) ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& sentence) : Error(sentence, 2) {}
};

/// Data, a checkpoint or the disk: damaged, changed, empty, full, not permitted. Exit code 3.
class __attribute__((visibility("default"))) DataError : public Error {
 public:
  explicit DataError(const std::string& sentence) : Error(sentence, 3) {}
};

/// A rank is lost, late or absent, or a port is in use. Exit code 4.
class __attribute__((visibility("default"))) RankError : public Error {
 public:
  explicit RankError(const std::string& sentence) : Error(sentence, 4) {}
};

/// A plugin cannot be loaded, or a hook breaks its contract. Exit code 5.
class __attribute__((visibility("default"))) PluginError : public Error {
 public:
  explicit PluginError(const std::string& sentence) : Error(sentence, 5) {}
};

}  // namespace tally
