#include "verbs/prediction.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>

namespace tally::verbs {
namespace {

struct Question {
  const char* text;
  std::vector<std::string> accepted;  ///< The first is shown as the right answer.
  const char* reason;
};

const std::vector<Question>& questions() {
  static const std::vector<Question> kQuestions{
      {"Rank 0 has 12 tokens of loss 1, rank 1 has 12 of loss 3: both formulas give 2. Now rank 1 "
       "gets 36 tokens of loss 3. What is the mean of the ranks' means?",
       {"2"},
       "(1 + 3) / 2: how many tokens a rank has does not appear in it"},
      {"And the global mean, over all tokens of both ranks?", {"2.5"}, "(12 * 1 + 36 * 3) / 48"},
      {"Which of them gives the short rank too much weight: means or global?",
       {"means", "mean of means", "the mean of means", "mean of the ranks' means"},
       "a token of rank 0 weighs 1/24 in it, one of rank 1 only 1/72; in the global mean each "
       "weighs 1/48"},
      {"What has changed in the right scale: W, N or a second division?",
       {"N"},
       "N went from 24 to 48; the number of ranks is the same, and nothing is divided twice"},
  };
  return kQuestions;
}

/// Without outer blanks, in lower case, with a decimal point and no trailing zeros: "2,50" is 2.5.
std::string normalised(std::string text) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), blank));
  while (!text.empty() && blank(static_cast<unsigned char>(text.back()))) text.pop_back();
  for (char& c : text) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (c == ',') c = '.';
  }
  if (text.find('.') != std::string::npos &&
      text.find_first_not_of("0123456789.") == std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text;
}

}  // namespace

std::vector<Answer> ask_predictions(const cli::Terminal& terminal) {
  std::FILE* const stream = terminal.json() ? stderr : stdout;
  std::vector<Answer> answers;
  for (const Question& question : questions()) {
    fmt::print(stream, "{}\n> ", question.text);
    std::fflush(stream);
    Answer answer{.question = question.text,
                  .given = {},
                  .right = question.accepted.front(),
                  .reason = question.reason};
    std::getline(std::cin, answer.given);
    answer.correct = std::any_of(question.accepted.begin(), question.accepted.end(),
                                 [&](const std::string& accepted) {
                                   return normalised(answer.given) == normalised(accepted);
                                 });
    answers.push_back(std::move(answer));
  }
  fmt::print(stream, "\n");
  return answers;
}

void show_answers(const std::vector<Answer>& answers, const cli::Terminal& terminal) {
  int right = 0;
  terminal.line();
  for (const Answer& answer : answers) {
    right += answer.correct ? 1 : 0;
    const std::string given = answer.given.empty() ? "no answer" : answer.given;
    terminal.line(answer.correct ? fmt::format("right: {} ({})", answer.right, answer.reason)
                                 : fmt::format("not right: {}; it is {} ({})", given, answer.right,
                                               answer.reason));
  }
  terminal.line(fmt::format("{} of {} predictions were right", right, answers.size()));
}

nlohmann::json document_of(const std::vector<Answer>& answers) {
  nlohmann::json document = nlohmann::json::array();
  for (const Answer& answer : answers) {
    document.push_back({{"question", answer.question},
                        {"given", answer.given},
                        {"right", answer.right},
                        {"correct", answer.correct}});
  }
  return document;
}

}  // namespace tally::verbs
