#include "verbs/gradients.h"

#include "checkpoint/data_lock.h"
#include "cli/rank_process.h"
#include "run/data_folder.h"
#include "run/run_folder.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <optional>

namespace tally::verbs {

namespace fs = std::filesystem;

namespace {

/// nullopt unless the file has what this job would compute.
std::optional<verify::GradientSet> gradients_on_disk(run::Job& job, const fs::path& file,
                                                     int64_t windows) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  verify::GradientSet set = verify::load_gradients(file);
  const bool is_this = set.digest == job.recipe.digest() &&
                       set.data == sha256(run::open_data(job).to_json()) &&
                       static_cast<int64_t>(set.windows.size()) == windows;
  if (!is_this) return std::nullopt;
  return set;
}

}  // namespace

fs::path gradients_file(const std::string& recipe) {
  return run::gradients_folder() / (recipe + ".safetensors");
}

fs::path reference_file(const std::string& recipe) {
  return run::gradients_folder() / "one-rank" / (recipe + ".safetensors");
}

files::FolderLocks lock_gradients() {
  run::make_folder(run::gradients_folder());
  return files::FolderLocks({run::gradients_folder()});
}

void make_gradients(const cli::RecipeOptions& options, const fs::path& recipe, int64_t windows,
                    const fs::path& file) {
  const run::Job job = options.assemble(recipe);
  run::make_folder(file.parent_path());
  std::error_code ignored;
  fs::remove(file, ignored);
  std::vector<std::string> arguments{
      "gradients", recipe.string(), "--windows", std::to_string(windows), "--file", file.string()};
  for (std::string& argument : options.arguments()) arguments.push_back(std::move(argument));
  cli::require_ranks(job.settings, std::move(arguments),
                     file.parent_path() / (file.stem().string() + "-logs"));
}

verify::GradientSet make_reference(const cli::RecipeOptions& options, const fs::path& recipe,
                                   int64_t windows, bool anew) {
  cli::RecipeOptions on_one_rank = options;
  on_one_rank.ranks = std::string("1");
  run::Job job = on_one_rank.assemble(recipe);
  const fs::path file = reference_file(job.settings.name);
  if (!anew) {
    if (auto set = gradients_on_disk(job, file, windows)) return std::move(*set);
  }
  make_gradients(on_one_rank, recipe, windows, file);
  return verify::load_gradients(file);
}

}  // namespace tally::verbs
