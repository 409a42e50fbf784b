#include "checkpoint/checkpoint.h"
#include "cli/rank_process.h"
#include "cli/recipe_options.h"
#include "files/folder_lock.h"
#include "report/numbers.h"
#include "run/run_folder.h"
#include "verbs/verbs.h"
#include "verify/fingerprint.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace tally::verbs {
namespace {

namespace fs = std::filesystem;

struct ResumeCheckOptions {
  cli::RecipeOptions recipe;
  std::string file;
  int64_t windows = 5;
};

/// The folders of one check, all under outputs/.
struct Folders {
  fs::path root = run::resume_check_folder();
  fs::path whole = root / "whole";
  fs::path parts = root / "parts";
};

/// One `train` in processes of its own, that stops after `stop_at` windows and leaves its
/// fingerprint.
void train_to(const ResumeCheckOptions& options, const run::Job& job, const fs::path& folder,
              int64_t stop_at, const std::string& resume) {
  std::vector<std::string> arguments{"train",          options.file,
                                     "--fingerprints", (folder / "fingerprints").string(),
                                     "--outputs",      folder.string()};
  if (!resume.empty()) arguments.insert(arguments.end(), {"--resume", resume});
  const std::vector<std::string> sets{
      fmt::format("train.stop_at={}", stop_at),
      fmt::format("train.updates={}", 2 * options.windows),
      cli::text_set("checkpoint.folder", (folder / "checkpoints").string())};
  for (std::string& argument : options.recipe.arguments(sets))
    arguments.push_back(std::move(argument));
  cli::require_ranks(job.settings, std::move(arguments), folder / "logs");
}

std::string step(const fs::path& folder, int64_t windows) {
  return (folder / "checkpoints" / checkpoint::step_name(windows)).string();
}

int run(const ResumeCheckOptions& given, const cli::Terminal& terminal) {
  ResumeCheckOptions options = given;
  options.file = cli::recipe_or_shipped(given.file, "resume").string();
  const run::Job job = options.recipe.assemble(options.file);
  const Folders folders;
  std::error_code ignored;
  run::make_folder(folders.root);
  const files::FolderLocks locks({folders.root});
  fs::remove_all(folders.whole, ignored);
  fs::remove_all(folders.parts, ignored);
  const int64_t n = options.windows;
  train_to(options, job, folders.whole, 2 * n, "");
  train_to(options, job, folders.parts, n, "");
  train_to(options, job, folders.parts, 2 * n, step(folders.parts, n));
  const std::vector<std::string> found = verify::fingerprint_differences(
      folders.whole / "fingerprints", folders.parts / "fingerprints", job.settings.ranks);
  terminal.document({{"recipe", job.settings.name},
                     {"windows", 2 * n},
                     {"ranks", job.settings.ranks},
                     {"differences", found},
                     {"equal", found.empty()}});
  if (found.empty()) {
    terminal.line(
        fmt::format("'{}': {} windows in one go and {} + {} over a checkpoint leave equal bytes on "
                    "{}: parameters, optimizer, random state, examples drawn",
                    job.settings.name, 2 * n, n, n, report::counted(job.settings.ranks, "rank")));
    return 0;
  }
  terminal.line(fmt::format(
      "'{}': after {} windows the resumed run differs from the one in one go:", job.settings.name,
      2 * n));
  for (const std::string& difference : found) terminal.line("  " + difference);
  return 1;
}

}  // namespace

cli::RunVerb declare_resume_check(cli::Arguments arguments) {
  auto options = std::make_shared<ResumeCheckOptions>();
  arguments.optional_file("recipe", options->file, "Recipe file; recipes/resume.toml by default");
  arguments.count("--windows", options->windows, 1, 32,
                  "Windows before the stop, and again after it");
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
