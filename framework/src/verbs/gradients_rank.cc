#include "cli/rank_process.h"
#include "verbs/gradients.h"
#include "verbs/verbs.h"
#include "verify/gradient_run.h"

#include <tally/error.h>

#include <memory>

namespace tally::verbs {
namespace {

struct GradientsOptions {
  cli::RecipeOptions recipe;
  std::string file;
  std::string into;
  int64_t windows = 1;
};

int run(const GradientsOptions& options, const cli::Terminal& /*terminal*/) {
  if (!cli::is_rank()) {
    const files::FolderLocks lock = lock_gradients();
    make_gradients(options.recipe, options.file, options.windows,
                   gradients_file(options.recipe.load(options.file).name()));
    return 0;
  }
  run::Job job = options.recipe.assemble(options.file);
  cli::run_as_rank(job, [&](run::RankSession& session) {
    const verify::GradientSet set = verify::compute_gradients(session, options.windows);
    if (session.rank() == 0) {
      const std::filesystem::path into = options.into;
      verify::save_gradients(into.empty() ? gradients_file(set.recipe) : into, set);
    }
    return 0;
  });
}

}  // namespace

cli::RunVerb declare_gradients(cli::Arguments arguments) {
  auto options = std::make_shared<GradientsOptions>();
  arguments.required_file("recipe", options->file, "Recipe file");
  arguments.count("--windows", options->windows, 1, kMaxWindows,
                  "How many windows, from the first");
  arguments.hidden_text("--file", options->into);
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
