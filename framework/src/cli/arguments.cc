#include "cli/arguments.h"

#include "report/text.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>

namespace tally::cli {
namespace {

std::string fault_of_empty(const std::string& text) {
  return text.empty() ? "the text after it is empty; give one, or leave the option out" : "";
}

CLI::Validator whole_number(int64_t minimum, int64_t maximum) {
  const auto fault = [=](const std::string& text) -> std::string {
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    const bool whole = result.ec == std::errc{} && result.ptr == end;
    if (whole && value >= minimum && value <= maximum) return "";
    return fmt::format("\"{}\" is no integer from {} to {}", report::shown(text), minimum, maximum);
  };
  return {fault, fmt::format("INT in [{} - {}]", minimum, maximum)};
}

}  // namespace

void Arguments::required_file(const char* name, std::string& value, const char* help) {
  app_->add_option(name, value, help)->required()->check(fault_of_empty);
}

void Arguments::optional_file(const char* name, std::string& value, const char* help) {
  app_->add_option(name, value, help)->check(fault_of_empty);
}

void Arguments::text(const char* names, std::string& value, const char* help) {
  app_->add_option(names, value, help)->check(fault_of_empty);
}

void Arguments::hidden_text(const char* names, std::string& value) {
  app_->add_option(names, value)->group("")->check(fault_of_empty);
}

void Arguments::texts(const char* names, std::vector<std::string>& values, const char* help) {
  // Without extra arguments, so that the recipe after an option is not taken for another value of
  // it.
  app_->add_option(names, values, help)->allow_extra_args(false)->check(fault_of_empty);
}

void Arguments::choice(const char* names, std::string& value,
                       const std::vector<std::string>& choices, const char* help) {
  app_->add_option(names, value, help)->check(CLI::IsMember(choices))->capture_default_str();
}

void Arguments::count(const char* names, int64_t& value, int64_t minimum, int64_t maximum,
                      const char* help) {
  app_->add_option(names, value, help)
      ->check(whole_number(minimum, maximum))
      ->capture_default_str();
}

void Arguments::count(const char* names, std::string& value, int64_t minimum, int64_t maximum,
                      const char* help) {
  app_->add_option(names, value, help)->check(whole_number(minimum, maximum));
}

void Arguments::size(const char* names, double& value, const char* help) {
  app_->add_option(names, value, help)
      ->check([](const std::string& text) {
        // CLI::Range lets NaN pass.
        double number = -1.0;
        const bool is_size =
            CLI::detail::lexical_cast(text, number) && std::isfinite(number) && number >= 0.0;
        return is_size ? std::string() : "'" + text + "' is no finite number from 0 up";
      })
      ->capture_default_str();
}

void Arguments::flag(const char* names, bool& value, const char* help) {
  app_->add_flag(names, value, help);
}

void Arguments::describe(const char* name, const char* help) {
  app_->get_option(name)->description(help);
}

Arguments Arguments::subverb(const char* name, const char* summary) {
  app_->require_subcommand(1);
  return Arguments(*app_->add_subcommand(name, summary));
}

bool Arguments::chosen() const { return app_->parsed(); }

}  // namespace tally::cli
