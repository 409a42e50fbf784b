#include "checkpoint/atomic_file.h"
#include "cli/rank_job.h"
#include "cli/recipe_options.h"
#include "cli/verbs.h"
#include "train/run_folder.h"
#include "train/saving.h"
#include "train/trainer.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <memory>

namespace tally::cli {
namespace {

using nlohmann::json;

constexpr int kSignalBase = 128;

struct TrainOptions {
  RecipeOptions recipe;
  std::string file;
  std::string checkpoints;
  bool continuous = false;

  std::vector<std::string> sets() const {
    if (checkpoints.empty()) return {};
    return {"checkpoint.folder=\"" + checkpoints + "\""};
  }
  std::vector<std::string> arguments() const {
    std::vector<std::string> result{"train", file};
    if (continuous) result.emplace_back("--continuous");
    for (std::string& argument : recipe.arguments(sets())) result.push_back(std::move(argument));
    return result;
  }
};

int64_t end_of_job(const train::Settings& settings, bool continuous) {
  return continuous ? settings.updates : std::min(settings.updates, settings.stop_at);
}

json summary_of(const train::Job& job, const train::TrainResult& result,
                const std::filesystem::path& checkpoint) {
  return {{"recipe", job.settings.name},
          {"windows", result.windows},
          {"ranks", job.settings.ranks},
          {"loss", result.loss},
          {"positions", result.positions},
          {"seconds", result.seconds},
          {"stop_signal", result.stop_signal},
          {"metrics", train::metrics_file(job.settings.name).string()},
          {"checkpoint", checkpoint.string()}};
}

int run_rank(train::RankSession& session, bool continuous) {
  train::Job& job = session.job();
  const std::string& name = job.settings.name;
  if (session.rank() == 0) {
    train::make_folder(train::run_folder(name));
    checkpoint::replace_file(train::resolved_recipe_file(name), job.recipe.resolved());
  }
  train::TrainerOptions options;
  options.range = {0, end_of_job(job.settings, continuous)};
  options.metrics_file = train::metrics_file(name);
  train::Trainer trainer(session, options);
  const train::TrainResult result = trainer.run();
  const std::filesystem::path saved =
      train::save_checkpoint(session, trainer.state(), trainer.optimizer());
  if (session.rank() == 0) {
    checkpoint::replace_file(train::summary_file(name),
                             summary_of(job, result, saved).dump(2) + "\n");
  }
  return result.stop_signal == 0 ? 0 : kSignalBase + static_cast<int>(result.stop_signal);
}

void show_summary(const train::Job& job, const Terminal& terminal) {
  std::ifstream stream(train::summary_file(job.settings.name));
  const json summary = json::parse(stream);
  terminal.document(summary);
  terminal.line(fmt::format("{}: {} windows on {} ranks in {:.1f} s, loss {:.4f}",
                            job.settings.name, summary["windows"].get<int64_t>(),
                            job.settings.ranks, summary["seconds"].get<double>(),
                            summary["loss"].get<double>()));
  terminal.line(fmt::format("checkpoint {}, metrics {}", summary["checkpoint"].get<std::string>(),
                            summary["metrics"].get<std::string>()));
}

int run(const TrainOptions& options, const Terminal& terminal) {
  train::Job job = options.recipe.assemble(options.file, options.sets());
  if (is_rank()) {
    run_as_rank(job,
                [&](train::RankSession& session) { return run_rank(session, options.continuous); });
  }
  train::make_folder(train::run_folder(job.settings.name));
  std::error_code ignored;
  std::filesystem::remove(train::summary_file(job.settings.name), ignored);
  const int exit_code =
      launch_ranks(job.settings, options.arguments(), train::logs_folder(job.settings.name));
  if (std::filesystem::exists(train::summary_file(job.settings.name), ignored))
    show_summary(job, terminal);
  return exit_code;
}

}  // namespace

RunVerb declare_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  app.add_option("recipe", options->file, "Recipe file")->required();
  app.add_flag("--continuous", options->continuous,
               "Run to train.updates; train.stop_at is ignored");
  app.add_option("--checkpoints", options->checkpoints,
                 "Folder of the checkpoints: beats checkpoint.folder");
  options->recipe.declare(app);
  return [options](const Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::cli
