#include "checkpoint/checkpoint.h"
#include "checkpoint/difference.h"
#include "report/numbers.h"
#include "report/table.h"
#include "verbs/verbs.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <ctime>
#include <memory>

namespace tally::verbs {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string date_of(const fs::path& folder) {
  std::error_code error;
  const auto time = fs::last_write_time(folder, error);
  if (error) return "?";
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::file_clock::to_sys(time));
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts);
  return text;
}

/// What is known of a step; the window is read off its name where the manifest cannot be trusted.
json examine(const fs::path& step) {
  json entry{{"path", step.string()}, {"date", date_of(step)}};
  try {
    const auto reader = checkpoint::CheckpointReader::open(step);
    int64_t bytes = 0;
    for (const files::FileEntry& file : reader.manifest().files) bytes += file.size;
    entry.update({{"valid", true},
                  {"window", reader.window()},
                  {"world", reader.world()},
                  {"bytes", bytes}});
  } catch (const DataError& error) {
    entry.update({{"valid", false}, {"reason", error.what()}});
  }
  return entry;
}

int list(const fs::path& folder, bool fail_on_damage, const cli::Terminal& terminal) {
  std::vector<fs::path> steps = checkpoint::list_steps(folder);
  std::error_code ignored;
  if (steps.empty() && fs::exists(folder / "manifest.json", ignored)) steps.push_back(folder);
  if (steps.empty()) throw DataError(fmt::format("there is no checkpoint in {}", folder.string()));
  report::Table table({{"step"},
                       {"ranks", report::Align::kRight},
                       {"date"},
                       {"size", report::Align::kRight},
                       {"validity"}});
  json entries = json::array();
  bool damaged = false;
  for (const fs::path& step : steps) {
    const json entry = examine(step);
    const bool valid = entry["valid"].get<bool>();
    damaged = damaged || !valid;
    table.row({entry["path"].get<std::string>(),
               valid ? std::to_string(entry["world"].get<int64_t>()) : "?",
               entry["date"].get<std::string>(),
               valid ? report::bytes(entry["bytes"].get<int64_t>()) : "?",
               valid ? report::Cell("every byte verified", report::Tone::kGood)
                     : report::Cell("DAMAGED: " + entry["reason"].get<std::string>(),
                                    report::Tone::kBad)});
    entries.push_back(entry);
  }
  terminal.document({{"checkpoints", entries}});
  terminal.line(table.text(terminal.colour()));
  return damaged && fail_on_damage ? 3 : 0;
}

int diff(const fs::path& a, const fs::path& b, const cli::Terminal& terminal) {
  const checkpoint::Difference difference = checkpoint::difference(
      checkpoint::CheckpointReader::open(a), checkpoint::CheckpointReader::open(b));
  terminal.document({{"max_parameter_difference", difference.max_parameter_difference},
                     {"equal", difference.sentences.empty()},
                     {"differences", difference.sentences}});
  terminal.line(fmt::format("max parameter difference {:g}", difference.max_parameter_difference));
  for (const std::string& sentence : difference.sentences) terminal.line(sentence);
  if (difference.sentences.empty())
    terminal.line("model, optimizer and every state have equal bytes");
  return difference.sentences.empty() ? 0 : 1;
}

}  // namespace

cli::RunVerb declare_checkpoints(cli::Arguments arguments) {
  struct Options {
    std::string folder = "artifacts/checkpoints";
    std::string a;
    std::string b;
  };
  auto options = std::make_shared<Options>();
  cli::Arguments list_verb = arguments.subverb(
      "list", "Show step, ranks, date, size and validity of each checkpoint in a folder");
  cli::Arguments verify_verb =
      arguments.subverb("verify", "The same, and exit code 3 when one is damaged");
  for (cli::Arguments* verb : {&list_verb, &verify_verb}) {
    verb->optional_file("folder", options->folder,
                        "Checkpoint folder, or one step; artifacts/checkpoints by default");
  }
  cli::Arguments diff_verb = arguments.subverb(
      "diff", "Show what differs between two checkpoints; exit code 1 when anything does");
  diff_verb.required_file("a", options->a, "Step folder");
  diff_verb.required_file("b", options->b, "Step folder");
  return [=](const cli::Terminal& terminal) {
    if (diff_verb.chosen()) return diff(options->a, options->b, terminal);
    return list(options->folder, verify_verb.chosen(), terminal);
  };
}

}  // namespace tally::verbs
