#include "cli/gradient_jobs.h"
#include "cli/rank_job.h"
#include "cli/verbs.h"
#include "verify/gradient_run.h"

#include <tally/error.h>

#include <memory>

namespace tally::cli {
namespace {

struct GradientsOptions {
  RecipeOptions recipe;
  std::string file;
  int64_t windows = 1;
};

int run(const GradientsOptions& options, const Terminal& /*terminal*/) {
  if (!is_rank()) return launch_gradients(options.recipe, options.file, options.windows);
  train::Job job = options.recipe.assemble(options.file);
  run_as_rank(job, [&](train::RankSession& session) {
    const verify::GradientSet set = verify::compute_gradients(session, options.windows);
    if (session.rank() == 0) verify::save_gradients(gradients_file(set.recipe), set);
    return 0;
  });
}

}  // namespace

RunVerb declare_gradients(Arguments arguments) {
  auto options = std::make_shared<GradientsOptions>();
  arguments.required_file("recipe", options->file, "Recipe file");
  arguments.count("--windows", options->windows, 1, kMaxWindows,
                  "How many windows, from the first");
  options->recipe.declare(arguments);
  return [options](const Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::cli
