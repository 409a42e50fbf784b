#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tally::cli {

/// What a verb takes from the command line. Over CLI11, whose header costs every file that includes
/// it seven seconds; arguments.cc and program.cc are those that do. Values must outlive the parse;
/// they keep what they hold when the user gives nothing. An empty text, such as that of a shell
/// variable that is not set, is an error. `names`: "-c,--config".
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(&app) {}

  void required_file(const char* name, std::string& value, const char* help);
  void optional_file(const char* name, std::string& value, const char* help);
  void text(const char* names, std::string& value, const char* help);
  /// Not shown in --help: for the program's own ranks.
  void hidden_text(const char* names, std::string& value);
  /// One value an occurrence; may be repeated.
  void texts(const char* names, std::vector<std::string>& values, const char* help);
  void choice(const char* names, std::string& value, const std::vector<std::string>& choices,
              const char* help);
  void count(const char* names, int64_t& value, int64_t minimum, int64_t maximum, const char* help);
  /// A finite number from 0 up.
  void size(const char* names, double& value, const char* help);
  /// The same number, for a value that is passed on as text.
  void count(const char* names, std::string& value, int64_t minimum, int64_t maximum,
             const char* help);
  void flag(const char* names, bool& value, const char* help);
  /// Replaces the help of an option that was declared before.
  void describe(const char* name, const char* help);

  /// A verb of this verb, exactly one of which must be given.
  Arguments subverb(const char* name, const char* summary);
  /// Whether the user gave this verb. After the parse.
  bool chosen() const;

 private:
  CLI::App* app_;
};

}  // namespace tally::cli
