#include "checkpoint/checkpoint.h"
#include "cli/recipe_options.h"
#include "log/log.h"
#include "report/numbers.h"
#include "report/table.h"
#include "run/data_folder.h"
#include "run/device.h"
#include "run/named_tensors.h"
#include "train/evaluation.h"
#include "verbs/verbs.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace tally::verbs {
namespace {

using checkpoint::CheckpointReader;
using checkpoint::DamagedCheckpoint;
using nlohmann::json;

struct EvaluateOptions {
  cli::RecipeOptions recipe;
  std::string file;
  std::string checkpoint;
  std::string split = "test";
};

struct Source {
  CheckpointReader reader;
  std::vector<DamagedCheckpoint> damaged;  ///< Newer ones that were passed over.
};

Source open_checkpoint(const EvaluateOptions& options, const run::Job& job) {
  if (!options.checkpoint.empty()) return {CheckpointReader::open(options.checkpoint), {}};
  const std::filesystem::path& folder = job.settings.checkpoint_folder;
  std::vector<DamagedCheckpoint> damaged;
  const auto steps = checkpoint::line_of(checkpoint::known_steps(folder, &damaged));
  auto newest = checkpoint::first_whole(steps, &damaged);
  for (const DamagedCheckpoint& checkpoint : damaged) {
    log::warning(fmt::format("{} is passed over: {}", checkpoint.path.string(), checkpoint.reason));
  }
  if (newest) return {std::move(*newest), std::move(damaged)};
  throw DataError(
      damaged.empty()
          ? fmt::format("there is no checkpoint in {}; train first, or name one with --checkpoint",
                        folder.string())
          : fmt::format("no checkpoint in {} verifies ({} damaged, the newest: {}); name another "
                        "one with --checkpoint",
                        folder.string(), damaged.size(), damaged.front().reason));
}

json document_of(const run::Job& job, const Source& source, bool same_data,
                 const train::Evaluation& evaluation) {
  json damaged = json::array();
  for (const DamagedCheckpoint& checkpoint : source.damaged)
    damaged.push_back({{"path", checkpoint.path.string()}, {"reason", checkpoint.reason}});
  json document{{"recipe", job.settings.name},      {"checkpoint", source.reader.path().string()},
                {"window", source.reader.window()}, {"damaged", damaged},
                {"same_data", same_data},           {"tokens", evaluation.terms.front().count}};
  document.update(json::parse(train::to_json(evaluation)));
  return document;
}

void show(const Source& source, const train::Evaluation& evaluation,
          const cli::Terminal& terminal) {
  using report::Align;
  terminal.line(fmt::format("{} after {}, split '{}': {} sequences, loss {:.6f}",
                            source.reader.path().string(),
                            report::counted(source.reader.window(), "window"), evaluation.split,
                            report::grouped(evaluation.sequences), evaluation.loss));
  report::Table table({{"figure"}, {"value", Align::kRight}, {"count", Align::kRight}, {"unit"}});
  for (const train::TermEvaluation& term : evaluation.terms) {
    table.row({term.info.name, fmt::format("{:.6f}", term.mean()), report::grouped(term.count),
               term.info.unit});
  }
  for (const auto& [name, measure] : evaluation.measures) {
    table.row({name, fmt::format("{:.6f}", measure.sum / static_cast<double>(measure.count)),
               report::grouped(measure.count), ""});
  }
  terminal.line(table.text(terminal.colour()));
}

int run(const EvaluateOptions& options, const cli::Terminal& terminal) {
  run::Job job = options.recipe.assemble(cli::recipe_or_shipped(options.file, "correct"));
  const Source source = open_checkpoint(options, job);
  const std::string lock = run::open_data(job).to_json();
  const bool same_data = lock == source.reader.data_lock();
  if (!same_data) {
    log::warning(fmt::format("{} was trained on other data than those in {}",
                             source.reader.path().string(), job.settings.data_folder.string()));
  }
  at::set_num_threads(static_cast<int>(job.settings.threads));
  const c10::Device device = run::choose_device(job.settings, {});
  run::use_device(device);
  job.task.call([&](Task& task) {
    task.initialise(job.settings.seed);
    task.to(device);
  });
  run::copy_by_name(source.reader.model(), run::model_of(job.task),
                    fmt::format("the model in {}", source.reader.path().string()),
                    "use the recipe that it was trained with");
  const train::Evaluation evaluation = train::evaluate(job.task, job.reducer, options.split,
                                                       job.settings.evaluation_batch_size, device);
  terminal.document(document_of(job, source, same_data, evaluation));
  show(source, evaluation, terminal);
  return 0;
}

}  // namespace

cli::RunVerb declare_evaluate(cli::Arguments arguments) {
  auto options = std::make_shared<EvaluateOptions>();
  arguments.optional_file("recipe", options->file, "Recipe file; recipes/correct.toml by default");
  arguments.text(
      "--checkpoint", options->checkpoint,
      "Folder of one checkpoint; by default the newest that verifies in checkpoint.folder");
  arguments.choice("--split", options->split, {"test", "validation", "train"}, "Which examples");
  options->recipe.declare(arguments);
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
