#include "verbs/gradients.h"

#include "checkpoint/data_lock.h"
#include "cli/rank_process.h"
#include "run/data_folder.h"
#include "run/run_folder.h"

#include <fmt/format.h>
#include <tally/error.h>

namespace tally::verbs {

namespace fs = std::filesystem;

fs::path gradients_file(const std::string& recipe) {
  return run::gradients_folder() / (recipe + ".safetensors");
}

files::FolderLocks lock_gradients() {
  run::make_folder(run::gradients_folder());
  return files::FolderLocks({run::gradients_folder()});
}

int launch_gradients(const cli::RecipeOptions& options, const fs::path& recipe, int64_t windows) {
  const run::Job job = options.assemble(recipe);
  std::error_code ignored;
  fs::remove(gradients_file(job.settings.name), ignored);
  std::vector<std::string> arguments{"gradients", recipe.string(), "--windows",
                                     std::to_string(windows)};
  for (std::string& argument : options.arguments()) arguments.push_back(std::move(argument));
  return cli::launch_ranks(job.settings, std::move(arguments),
                           run::gradients_folder() / (job.settings.name + "-logs"));
}

verify::GradientSet ensure_reference(const cli::RecipeOptions& options, const fs::path& recipe,
                                     int64_t windows) {
  run::Job job = options.assemble(recipe);
  const fs::path file = gradients_file(job.settings.name);
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    const verify::GradientSet set = verify::load_gradients(file);
    const Digest data = sha256(run::open_data(job).to_json());
    if (set.digest == job.recipe.digest() && set.data == data &&
        static_cast<int64_t>(set.windows.size()) == windows) {
      return set;
    }
  }
  const int exit_code = launch_gradients(options, recipe, windows);
  if (exit_code != 0)
    throw Error(fmt::format("the gradients of '{}' could not be computed", job.settings.name),
                exit_code);
  return verify::load_gradients(file);
}

}  // namespace tally::verbs
