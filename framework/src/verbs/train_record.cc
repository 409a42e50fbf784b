#include "verbs/train_record.h"

#include "log/log.h"
#include "process/ending.h"
#include "process/exit_code.h"
#include "report/json_number.h"
#include "report/numbers.h"
#include "run/stop_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tally::verbs {
namespace {

using nlohmann::json;

/// The sentence that a log has of a stop.
std::string reason_of(const distributed::Stop& stop) {
  if (stop.reason == distributed::Stop::Reason::kFailedSave)
    return "a checkpoint failed (checkpoint.on_error)";
  const run::StopRequest request = run::stop_request();
  if (request.signal == 0) return "another rank was asked to stop";
  return fmt::format(
      "signal {} came {}", request.signal,
      request.window < 0 ? "before the first window" : fmt::format("at window {}", request.window));
}

/// Why there is no loss to show, or why it is none to be glad of; empty for a finite one.
std::string remark_on(const train::TrainResult& result, int64_t begun) {
  if (result.loss && std::isfinite(*result.loss)) return "";
  if (result.loss)
    return fmt::format("the loss of the last window is not finite ({}); the model may be spoilt",
                       *result.loss);
  if (result.windows == begun) return "nothing was left to do, so there is no loss";
  return fmt::format("none of the {} had a supervised position, so there is no loss",
                     report::counted(result.windows - begun, "window"));
}

}  // namespace

TrainRecorder::TrainRecorder(run::RankSession& session, const run::RunFolder& folder)
    : settings_(session.job().settings) {
  if (session.rank() == 0 && settings_.evaluate_every > 0) lines_.emplace(folder.evaluations());
}

void TrainRecorder::open(int64_t windows) {
  // The evaluation after the checkpoint's own window comes after the checkpoint: it is made again.
  if (lines_) lines_->open(std::max<int64_t>(windows - 1, 0));
}

void TrainRecorder::on_evaluation(int64_t windows, const train::Evaluation& evaluation) {
  if (!lines_) return;
  last_ = json::parse(train::to_json(evaluation));
  last_["window"] = windows - 1;
  lines_->append(last_.dump());
  log::info(fmt::format("after {} the loss on '{}' is {:.6f}", report::counted(windows, "window"),
                        evaluation.split, evaluation.loss));
}

void TrainRecorder::on_stop(const distributed::Stop& stop, int64_t windows) {
  process::end_process_within(settings_.stop_grace, process::kRanks);
  log::info(
      fmt::format("{}; stopping after {}", reason_of(stop), report::counted(windows, "window")));
}

json summary_of(const run::Job& job, const run::RunFolder& folder, const train::TrainResult& result,
                int64_t begun, const std::filesystem::path& checkpoint, const json& evaluation) {
  return {{"recipe", job.settings.name},
          {"windows", result.windows},
          {"windows_run", result.windows - begun},
          {"windows_skipped", result.skipped},
          {"ranks", job.settings.ranks},
          {"loss", report::number(result.loss)},
          {"remark", remark_on(result, begun)},
          {"positions", result.positions},
          {"seconds", result.seconds},
          {"stop_signal", result.stop.signal},
          {"metrics", folder.metrics().string()},
          {"checkpoint", checkpoint.string()},
          {"evaluations", folder.evaluations().string()},
          {"evaluation", evaluation}};
}

json summary_of_nothing(const run::Job& job, int64_t windows,
                        const std::filesystem::path& checkpoint) {
  return {{"recipe", job.settings.name},
          {"windows", windows},
          {"windows_run", 0},
          {"ranks", job.settings.ranks},
          {"loss", nullptr},
          {"remark", fmt::format("nothing was left to do: the run ends after {} (train.updates)",
                                 report::counted(job.settings.updates, "window"))},
          {"checkpoint", checkpoint.string()}};
}

void show_summary(const json& summary, const cli::Terminal& terminal) {
  terminal.document(summary);
  const auto name = summary["recipe"].get<std::string>();
  const auto remark = summary["remark"].get<std::string>();
  if (summary["windows_run"] == 0) {
    terminal.line(fmt::format("{}: {}; checkpoint {}", name, remark,
                              summary["checkpoint"].get<std::string>()));
    return;
  }
  terminal.line(fmt::format("{}: {} on {} in {:.1f} s, loss {}", name,
                            report::counted(summary["windows"].get<int64_t>(), "window"),
                            report::counted(summary["ranks"].get<int64_t>(), "rank"),
                            summary["seconds"].get<double>(),
                            report::shown_number(summary["loss"])));
  if (!remark.empty()) terminal.line(remark);
  if (const json& evaluation = summary["evaluation"]; !evaluation.is_null()) {
    terminal.line(fmt::format("after {} the loss on '{}' is {}, all in {}",
                              report::counted(evaluation["window"].get<int64_t>() + 1, "window"),
                              evaluation["split"].get<std::string>(),
                              report::shown_number(evaluation["loss"]),
                              summary["evaluations"].get<std::string>()));
  }
  terminal.line(fmt::format("checkpoint {}, metrics {}", summary["checkpoint"].get<std::string>(),
                            summary["metrics"].get<std::string>()));
}

}  // namespace tally::verbs
