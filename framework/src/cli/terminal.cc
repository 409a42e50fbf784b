#include "cli/terminal.h"

#include "report/text.h"

#include <nlohmann/json.hpp>

#include <unistd.h>
#include <cstdio>
#include <cstdlib>

namespace tally::cli {

bool Terminal::colour() const {
  const char* refused = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0');
}

void Terminal::line(std::string_view text) const {
  if (json_) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (text.empty() || text.back() != '\n') std::fputc('\n', stdout);
  std::fflush(stdout);
}

void Terminal::remark(std::string_view text) const {
  std::fprintf(stderr, "tally: %s\n", report::one_line(text).c_str());
}

void Terminal::document(const nlohmann::json& document) const {
  if (!json_) return;
  const std::string text = document.dump(2) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::fputc('\n', stderr);
}

void ProgressLine::show(std::string_view text) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\x1b[K%.*s", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace tally::cli
