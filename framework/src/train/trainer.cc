#include "train/trainer.h"

#include "log/log.h"
#include "process/ending.h"
#include "train/stopwatch.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tally::train {
namespace {

using distributed::Phase;

/// How long the trainer may take to notice the loader's failure by itself.
constexpr std::chrono::seconds kFailureGrace{3};

}  // namespace

void end_process_soon(const std::exception_ptr& failure) {
  process::end_process_within(kFailureGrace, process::exit_code_of(failure));
}

Trainer::Trainer(run::RankSession& session, run::TrainingState& state, int64_t divisor,
                 Observer& observer, TrainerOptions options)
    : session_(session),
      state_(state),
      observer_(observer),
      options_(std::move(options)),
      divisor_(divisor),
      buckets_(session.parameters(), session.groups().gradients,
               session.job().settings.bucket_bytes, divisor_),
      sync_(session.parameters(), buckets_, session.groups().gradients),
      parts_{.job = session.job(),
             .terms = session.terms(),
             .parameters = session.parameters(),
             .buckets = buckets_,
             .sync = sync_,
             .optimizer = state.optimizer(),
             .board = session.board(),
             .device = session.device(),
             .divisor = divisor_,
             .observer = observer},
      metrics_(session.rank() == 0 ? options_.metrics_file : std::nullopt, session.terms(),
               divisor_),
      evaluation_(session) {}

LoaderOptions Trainer::loader_options(int64_t end) {
  LoaderOptions options;
  options.loading = {.terms = session_.terms().size(),
                     .chain = state_.position().history().chain,
                     .device = session_.device(),
                     .evaluation = evaluation_.batches()};
  options.range = {state_.position().windows(), end};
  options.timeout = session_.job().settings.timeout;
  options.on_failure = [this](const std::exception_ptr& failure) {
    // The process may end before the trainer has noticed: the reason must be known by then.
    session_.board().fail(process::sentence_of(failure));
    options_.on_loader_failure(failure);
  };
  options.stop = [this] {
    const bool failed = options_.saving != nullptr && options_.saving->must_stop();
    return failed ? distributed::Stop::by_failed_save()
                  : distributed::Stop::by_signal(options_.stop_signal());
  };
  return options;
}

const TrainResult& Trainer::run_until(int64_t end) {
  const Stopwatch job;
  metrics_.open(state_.position().windows());
  session_.job().task.call([](Task& task) { task.set_training(true); });
  session_.board().last_window(end);
  Loader loader(session_.job(), session_.groups().control, loader_options(end));
  for (;;) {
    const int64_t window = state_.position().windows();
    plugin::set_place(fmt::format("at window {}, rank {}", window, session_.rank()));
    session_.board().window(window);
    session_.board().phase(Phase::kWaitingForPlan);
    const Stopwatch asked;
    const Prepared prepared = loader.next();
    const double waited = asked.seconds();
    take_metrics(prepared.agreement);
    if (std::holds_alternative<EndOfRun>(prepared.work)) {
      result_.stop = prepared.agreement.stop;
      if (result_.stop.requested()) observer_.on_stop(result_.stop, window);
      break;
    }
    if (const auto* pass = std::get_if<EvaluationPass>(&prepared.work)) {
      evaluate(*pass);
    } else {
      run_or_skip(std::get<PreparedWindow>(prepared.work), prepared.agreement, loader, waited);
    }
  }
  take_metrics(loader.final_exchange());
  result_.windows = state_.position().windows();
  result_.seconds = job.seconds();
  return result_;
}

void Trainer::run_or_skip(const PreparedWindow& prepared, const distributed::Agreement& agreement,
                          Loader& loader, double waited) {
  if (is_empty(agreement)) {
    skip_window(prepared.plan.window, agreement, loader);
  } else {
    run_window(prepared, agreement, loader, waited);
  }
  finish_window(prepared);
}

void Trainer::finish_window(const PreparedWindow& prepared) {
  state_.position().finished(prepared.plan, prepared.sampler_state);
  session_.board().finished(state_.position().windows());
  const Stopwatch updated;
  if (options_.saving != nullptr) options_.saving->after_window();
  metrics_.saved(prepared.plan.window, updated.seconds());
}

void Trainer::evaluate(const EvaluationPass& pass) {
  if (const std::optional<Evaluation> evaluation = evaluation_.run(pass))
    observer_.on_evaluation(state_.position().windows(), *evaluation);
}

bool Trainer::is_empty(const distributed::Agreement& agreement) {
  const std::vector<int64_t>& counts = agreement.global_counts;
  return std::all_of(counts.begin(), counts.end(), [](int64_t count) { return count == 0; });
}

void Trainer::run_window(const PreparedWindow& prepared, const distributed::Agreement& agreement,
                         Loader& loader, double waited) {
  const Stopwatch watch;
  Window window(parts_, prepared, agreement);
  WindowOutcome outcome = window.run();
  loader.finished(std::move(outcome.report));
  WindowNotes notes = notes_of(agreement, outcome.times, waited);
  notes.total_seconds = waited + watch.seconds();
  metrics_.ran(prepared.plan.window, std::move(notes));
}

void Trainer::skip_window(int64_t window, const distributed::Agreement& agreement, Loader& loader) {
  if (!session_.job().settings.skip_empty_windows) {
    throw DataError(
        fmt::format("window {} has no supervised position on any rank, so its mean does not exist; "
                    "check the labels, or set train.on_empty_window = \"skip\"",
                    window));
  }
  log::warning(
      fmt::format("window {} has no supervised position on any rank and is skipped", window));
  const auto terms = static_cast<int64_t>(session_.terms().size());
  loader.finished({window, at::zeros({2 + terms}, at::kDouble),
                   std::vector<int64_t>(static_cast<size_t>(terms), 0), nullptr});
  metrics_.ran(window, notes_of(agreement, {}, 0.0));
}

WindowNotes Trainer::notes_of(const distributed::Agreement& agreement, const PhaseTimes& times,
                              double waited) const {
  WindowNotes notes;
  notes.times = times;
  notes.wait_seconds = waited;
  if (session_.rank() != 0) return notes;
  for (const std::vector<int64_t>& local : agreement.counts_by_rank) {
    std::vector<TermCounts> counts;
    for (size_t t = 0; t < local.size(); ++t)
      counts.push_back({agreement.global_counts[t], local[t]});
    notes.scales_by_rank.push_back(session_.job().reducer.call([&](const LossReducer& reducer) {
      return reducer.scale(session_.terms(), counts, {session_.world(), divisor_});
    }));
  }
  return notes;
}

void Trainer::take_metrics(const distributed::Agreement& agreement) {
  const std::optional<WindowMetrics> metrics = metrics_.finished(agreement);
  if (!metrics) return;
  if (!metrics->finite) {
    log::warning(fmt::format("window {}: the gradient is not finite, so no update was made",
                             metrics->window));
  }
  if (metrics->loss) {
    result_.loss = metrics->loss;
  } else {
    ++result_.skipped;
  }
  result_.positions += metrics->counts[0];
  observer_.on_metrics(*metrics);
  session_.board().progress(result_.loss.value_or(std::nan("")), result_.positions);
}

}  // namespace tally::train
