// How long a checkpoint holds training up, and what its parts cost. See README.md.
#include "checkpoint/checkpoint.h"
#include "log/log.h"
#include "run/data_folder.h"
#include "run/device.h"
#include "save/schedule.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <torch/cuda.h>
#include <torch/torch.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

namespace tally::save {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMebi = int64_t{1} << 20;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A model that is one block of floats; it is saved and never run.
class BlockTask final : public Task {
 public:
  explicit BlockTask(int64_t values) : values_(values) {}
  void prepare(const fs::path& /*folder*/) override {}
  std::vector<fs::path> data_files() const override { return {}; }
  ExampleTable examples(std::string_view /*split*/) const override { return {}; }
  std::vector<TermInfo> terms() const override { return {{.name = "main", .unit = "token"}}; }
  void initialise(int64_t seed) override {
    torch::manual_seed(seed);
    block_ = torch::randn({values_}).set_requires_grad(true);
  }
  std::vector<NamedTensor> parameters() override { return {{"block", block_}}; }
  void to(at::Device device) override {
    block_ = block_.detach().to(device).set_requires_grad(true);
  }
  void set_training(bool /*training*/) override {}
  Batch load(std::string_view /*split*/, const Microbatch& /*examples*/,
             const std::optional<BatchShape>& /*shape*/) const override {
    return {};
  }
  std::vector<at::Tensor> forward(const Batch& /*batch*/) override { return {}; }
  Measures evaluate(const Batch& /*batch*/) override { return {}; }

 private:
  int64_t values_;
  at::Tensor block_;
};

class NoWindows final : public Sampler {
 public:
  void prepare(const ExampleTable& /*examples*/) override {}
  std::optional<WindowPlan> plan(int64_t /*window*/) override { return std::nullopt; }
  void save_state(StateWriter& /*writer*/) const override {}
  void load_state(const StateReader& /*reader*/) override {}
};

template <class T>
plugin::Hooked<T> in_bench(std::unique_ptr<T> hook, const std::string& kind) {
  return {std::move(hook), {kind, "block", "bench", "0"}};
}

run::Job make_job(const fs::path& folder, bool async, const char* device, int64_t values) {
  std::ofstream(folder / "block.toml")
      << "[run]\ndevice = \"" << device << "\"\n[window]\nshards = 1\n"
      << "[optimizer]\nlearning_rate = 0.1\nmomentum = 0.9\n"
      << "[loss_reducer]\nplugin = \"token_mean\"\n[sync_policy]\nplugin = \"no_sync\"\n"
      << "[data]\nfolder = \"" << folder.string() << "\"\n"
      << "[checkpoint]\nevery = 1\nasync = " << (async ? "true" : "false") << "\nfolder = \""
      << (folder / "steps").string() << "\"\n";
  const recipe::Recipe recipe =
      recipe::Recipe::load({.recipe = folder / "block.toml", .config = {}, .sets = {}});
  auto factory = std::make_unique<plugin::HookFactory>(
      std::vector<fs::path>{TALLY_BINARY_FOLDER "/lib/tally/plugins"},
      run::read_settings(recipe).seed);
  auto reducer = factory->create<LossReducer>(recipe.section("loss_reducer"));
  auto policy = factory->create<SyncPolicy>(recipe.section("sync_policy"));
  return run::assemble(recipe, std::move(factory),
                       {in_bench<Task>(std::make_unique<BlockTask>(values), "task"),
                        in_bench<Sampler>(std::make_unique<NoWindows>(), "sampler"),
                        std::move(reducer),
                        std::move(policy),
                        {}});
}

/// A run before its first window, in a folder of its own below the current one: the disk under
/// test is the one where the program runs.
class BlockRun {
 public:
  BlockRun(bool async, const char* device, int64_t mebibytes)
      : folder_(fs::current_path() / fmt::format("saving-bench-{}", ::getpid())),
        job_((fs::create_directory(folder_),
              make_job(folder_, async, device, mebibytes * kMebi / int64_t{sizeof(float)}))) {
    run::prepare_data(job_);
    session_ = std::make_unique<run::RankSession>(
        job_, distributed::Membership{},
        distributed::BoardWriter(distributed::Board::in_memory(1), 0));
    state_ = std::make_unique<run::TrainingState>(*session_);
  }
  ~BlockRun() {
    state_.reset();
    session_.reset();
    fs::remove_all(folder_);
  }
  BlockRun(const BlockRun&) = delete;
  BlockRun& operator=(const BlockRun&) = delete;

  run::RankSession& session() { return *session_; }
  Schedule schedule() { return {*session_, *state_}; }

 private:
  fs::path folder_;
  run::Job job_;
  std::unique_ptr<run::RankSession> session_;
  std::unique_ptr<run::TrainingState> state_;
};

/// The digest in the manifest against the values in memory.
bool is_right(const fs::path& step, run::RankSession& session) {
  const std::vector<NamedTensor> model = checkpoint::CheckpointReader::open(step).model();
  return model.size() == 1 && model[0].tensor.equal(session.parameters().values().to(at::kCPU));
}

/// Seconds that SHA-256 takes over as many bytes as the step's two large files have.
double hashing_seconds(int64_t mebibytes) {
  static const std::vector<char> bytes(static_cast<size_t>(kMebi), '\x5a');
  const Clock::time_point start = Clock::now();
  Sha256 hash;
  for (int64_t i = 0; i < 2 * mebibytes; ++i) hash.update(bytes.data(), bytes.size());
  benchmark::DoNotOptimize(hash.finish());
  return seconds_since(start);
}

void measure(benchmark::State& state, bool async, const char* device) {
  const int64_t mebibytes = state.range(0);
  BlockRun run(async, device, mebibytes);
  double whole = 0.0;
  double hashing = 0.0;
  Schedule schedule = run.schedule();
  for ([[maybe_unused]] auto _ : state) {
    run::wait_for_device(run.session().device());
    const Clock::time_point start = Clock::now();
    schedule.after_window();
    state.SetIterationTime(seconds_since(start));
    const fs::path step = schedule.finish();
    whole += seconds_since(start);
    hashing += hashing_seconds(mebibytes);
    if (!is_right(step, run.session())) state.SkipWithError("the saved step has other values");
  }
  const auto saves = static_cast<double>(state.iterations());
  state.counters["save_s"] = whole / saves;
  state.counters["hash_s"] = hashing / saves;
  state.counters["hash_share"] = hashing / whole;
  state.counters["MiB"] = static_cast<double>(2 * mebibytes);
}

/// The number of saves is fixed: only a part of each is timed, so that a time to fill would take
/// long.
void declare(const char* name, bool async, const char* device) {
  const auto body = [=](benchmark::State& state) { measure(state, async, device); };
  for (const auto& [mebibytes, saves] : {std::pair{1, 40}, {16, 20}, {256, 5}}) {
    benchmark::RegisterBenchmark(name, body)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Arg(mebibytes)
        ->Iterations(saves);
  }
}

}  // namespace
}  // namespace tally::save

int main(int argc, char** argv) {
  using tally::save::declare;
  declare("stall/sync/cpu", false, "cpu");
  declare("stall/async/cpu", true, "cpu");
  if (torch::cuda::is_available()) {
    declare("stall/sync/cuda", false, "cuda");
    declare("stall/async/cuda", true, "cuda");
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
