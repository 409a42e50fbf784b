#include "checkpoint/checkpoint.h"
#include "cli/recipe_options.h"
#include "cli/verbs.h"
#include "log/log.h"
#include "report/numbers.h"
#include "report/table.h"
#include "train/data_folder.h"
#include "train/device.h"
#include "train/evaluation.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace tally::cli {
namespace {

using checkpoint::CheckpointReader;
using checkpoint::DamagedCheckpoint;
using nlohmann::json;

struct EvaluateOptions {
  RecipeOptions recipe;
  std::string file;
  std::string checkpoint;
  std::string split = "test";
};

struct Source {
  CheckpointReader reader;
  std::vector<DamagedCheckpoint> damaged;  ///< Newer ones that were passed over.
};

Source open_checkpoint(const EvaluateOptions& options, const train::Job& job) {
  if (!options.checkpoint.empty()) return {CheckpointReader::open(options.checkpoint), {}};
  const std::filesystem::path& folder = job.settings.checkpoint_folder;
  std::vector<DamagedCheckpoint> damaged;
  const auto newest = checkpoint::find_newest(folder, &damaged);
  for (const DamagedCheckpoint& checkpoint : damaged) {
    log::warning(fmt::format("{} is passed over: {}", checkpoint.path.string(), checkpoint.reason));
  }
  if (newest) return {CheckpointReader::open(*newest), std::move(damaged)};
  throw DataError(
      damaged.empty()
          ? fmt::format("there is no checkpoint in {}; train first, or name one with --checkpoint",
                        folder.string())
          : fmt::format("no checkpoint in {} verifies ({} damaged, the newest: {}); name another "
                        "one with --checkpoint",
                        folder.string(), damaged.size(), damaged.front().reason));
}

json document_of(const train::Job& job, const Source& source, bool same_data,
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

void show(const Source& source, const train::Evaluation& evaluation, const Terminal& terminal) {
  using report::Align;
  terminal.line(fmt::format("{} after {} windows, split '{}': {} sequences, loss {:.6f}",
                            source.reader.path().string(), source.reader.window(), evaluation.split,
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

int run(const EvaluateOptions& options, const Terminal& terminal) {
  train::Job job = options.recipe.assemble(recipe_or_shipped(options.file, "correct"));
  const Source source = open_checkpoint(options, job);
  const std::string lock = train::open_data(job).to_json();
  const bool same_data = lock == source.reader.data_lock();
  if (!same_data) {
    log::warning(fmt::format("{} was trained on other data than those in {}",
                             source.reader.path().string(), job.settings.data_folder.string()));
  }
  at::set_num_threads(static_cast<int>(job.settings.threads));
  const c10::Device device = train::choose_device(job.settings, {});
  train::use_device(device);
  job.task.call([&](Task& task) {
    task.initialise(job.settings.seed);
    task.to(device);
  });
  train::load_model(job.task, source.reader.model(), source.reader.path().string());
  const train::Evaluation evaluation = train::evaluate(job.task, job.reducer, options.split,
                                                       job.settings.evaluation_batch_size, device);
  terminal.document(document_of(job, source, same_data, evaluation));
  show(source, evaluation, terminal);
  return 0;
}

}  // namespace

RunVerb declare_evaluate(Arguments arguments) {
  auto options = std::make_shared<EvaluateOptions>();
  arguments.optional_file("recipe", options->file, "Recipe file; recipes/correct.toml by default");
  arguments.text(
      "--checkpoint", options->checkpoint,
      "Folder of one checkpoint; by default the newest that verifies in checkpoint.folder");
  arguments.choice("--split", options->split, {"test", "validation", "train"}, "Which examples");
  options->recipe.declare(arguments);
  return [options](const Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::cli
