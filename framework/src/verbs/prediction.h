#pragma once

#include "cli/terminal.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace tally::verbs {

/// What a person said before seeing the result.
struct Answer {
  std::string question;
  std::string given;  ///< As typed; empty when the input had ended.
  std::string right;
  std::string reason;
  bool correct = false;
};

/// Asks the exercise's questions and reads one line from standard input for each. The questions go
/// to standard error with --json.
std::vector<Answer> ask_predictions(const cli::Terminal& terminal);

void show_answers(const std::vector<Answer>& answers, const cli::Terminal& terminal);
nlohmann::json document_of(const std::vector<Answer>& answers);

}  // namespace tally::verbs
