#include "distributed/launcher.h"
#include "generated/version.h"
#include "plugin/hook_factory.h"
#include "plugin/library.h"
#include "process/ending.h"
#include "report/numbers.h"
#include "report/table.h"
#include "run/device.h"
#include "verbs/verbs.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <tally/abi.h>
#include <tally/error.h>
#include <torch/cuda.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

namespace tally::verbs {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kTimeout{60};
#if defined(__clang__)
constexpr const char* kCompiler = "Clang";
#else
constexpr const char* kCompiler = "GCC";
#endif

struct DoctorOptions {
  std::vector<std::string> plugin_path;
  bool dual = false;
};

struct Check {
  std::string name;
  bool ok = true;
  std::string detail;
};

std::string cuda_version() {
  try {
    const auto version = at::detail::getCUDAHooks().versionCUDART();
    return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  } catch (const std::exception&) {
    return "no CUDA";
  }
}

std::vector<Check> check_versions() {
  return {{"tally", true, fmt::format("{}, hook API {}", kVersion, TALLY_HOOK_API)},
          {"LibTorch", true, fmt::format("{}, {}", TORCH_VERSION, cuda_version())},
          {"compiler", true, fmt::format("{} {}, {}", kCompiler, __VERSION__, TALLY_ARCHITECTURE)}};
}

std::vector<fs::path> plugin_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Check check_plugin(const fs::path& file) {
  const std::string name = "plugin " + file.stem().string();
  try {
    const plugin::Library& library = plugin::load_library(file);
    return {name, true,
            fmt::format("{} {}, {}", library.descriptor->name, library.descriptor->version,
                        library.file.string())};
  } catch (const Error& error) {
    return {name, false, error.what()};
  }
}

std::vector<Check> check_plugins(const std::vector<fs::path>& folders) {
  std::vector<Check> checks;
  std::set<fs::path> seen;  // the first file found decides, so a later one of its name is not used
  std::string searched;
  for (const fs::path& folder : folders) {
    searched += (searched.empty() ? "" : ", ") + folder.string();
    for (const fs::path& file : plugin_files(folder)) {
      if (seen.insert(file.filename()).second) checks.push_back(check_plugin(file));
    }
  }
  if (checks.empty())
    checks.push_back({"plugins", false, "no folder holds a plugin (searched " + searched + ")"});
  return checks;
}

/// A folder for the logs of ranks that are gone when all went well.
class LogFolder {
 public:
  LogFolder() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "tally-doctor-XXXXXX").string();
    if (error || ::mkdtemp(name.data()) == nullptr)
      throw DataError(
          "cannot make a folder for logs in the one for temporary files; set TMPDIR to a folder "
          "where you may write");
    path_ = name;
  }
  ~LogFolder() {
    std::error_code ignored;
    if (!keep_) fs::remove_all(path_, ignored);
  }
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;

  const fs::path& path() const { return path_; }
  void keep() { keep_ = true; }

 private:
  fs::path path_;
  bool keep_ = false;
};

/// Two processes add up a tensor, as the ranks of a run would.
Check check_all_reduce(const std::string& name, const std::string& transport) {
  LogFolder logs;
  distributed::LaunchPlan plan;
  plan.ranks = 2;
  plan.arguments = {"doctor-rank", "--transport", transport};
  plan.log_folder = logs.path();
  plan.timeout = kTimeout;
  const distributed::LaunchOutcome outcome = distributed::launch(plan);
  if (outcome.exit_code == 0) return {name, true, "2 processes, the sum is right"};
  logs.keep();
  return {name, false,
          fmt::format("{}; the logs are in {}", outcome.failure, logs.path().string())};
}

/// A GPU that is there but cannot be used is worth a no; one that was hidden on purpose is not.
Check check_gpu_count(int64_t count) {
  if (count > 0) return {"GPUs", true, fmt::format("{} that LibTorch can use", count)};
  std::error_code error;
  if (fs::exists("/dev/nvidia0", error) && std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) {
    return {"GPUs", false,
            "there is /dev/nvidia0, but LibTorch can use no GPU; check that the driver is new "
            "enough for the CUDA version above"};
  }
  return {"GPUs", true, "none; everything runs on the CPU"};
}

Check check_gpu(int64_t index) {
  const std::string name = fmt::format("GPU {}", index);
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
  try {
    run::use_device(device);
    // Small whole numbers: the product is exact in every order of summation.
    const at::Tensor a = at::arange(256 * 256).remainder(7).to(at::kFloat).view({256, 256});
    const at::Tensor on_gpu = a.to(device).matmul(a.to(device)).to(at::kCPU);
    if (!on_gpu.equal(a.matmul(a)))
      return {name, false, "a product of two matrices differs from the CPU's"};
    const auto [free, total] = at::accelerator::getMemoryInfo(device.index());
    return {name, true,
            fmt::format("{} free of {}; a product of matrices equals the CPU's",
                        report::bytes(static_cast<int64_t>(free)),
                        report::bytes(static_cast<int64_t>(total)))};
  } catch (const std::exception& error) {
    return {name, false, process::first_line(error)};
  }
}

/// The launches come before anything that makes threads.
std::vector<Check> run_checks(const DoctorOptions& options) {
  std::vector<Check> checks = check_versions();
  const auto folders =
      plugin::default_search_path({options.plugin_path.begin(), options.plugin_path.end()});
  for (Check& check : check_plugins(folders)) checks.push_back(std::move(check));
  checks.push_back(check_all_reduce("all-reduce on the CPU", "gloo"));
  const auto gpus = static_cast<int64_t>(torch::cuda::device_count());
  checks.push_back(check_gpu_count(gpus));
  if (options.dual && gpus < 2) {
    checks.push_back({"two GPUs", false,
                      fmt::format("--dual wants two GPUs, and LibTorch can use {}; run where there "
                                  "are two, or without --dual",
                                  gpus)});
  } else if (options.dual) {
    checks.push_back(check_all_reduce("all-reduce on two GPUs", "nccl"));
  }
  for (int64_t index = 0; index < gpus; ++index) checks.push_back(check_gpu(index));
  return checks;
}

int run(const DoctorOptions& options, const cli::Terminal& terminal) {
  using report::Tone;
  const std::vector<Check> checks = run_checks(options);
  report::Table table({{"check"}, {"result"}, {"detail"}});
  nlohmann::json list = nlohmann::json::array();
  bool ok = true;
  for (const Check& check : checks) {
    ok = ok && check.ok;
    table.row({check.name,
               report::Cell(check.ok ? "ok" : "no", check.ok ? Tone::kGood : Tone::kBad),
               check.detail});
    list.push_back({{"check", check.name}, {"ok", check.ok}, {"detail", check.detail}});
  }
  terminal.line(table.text(terminal.colour()));
  terminal.document({{"ok", ok}, {"checks", list}});
  for (const Check& check : checks) {
    if (!check.ok) fmt::print(stderr, "tally: {}: {}\n", check.name, check.detail);
  }
  return ok ? 0 : 1;
}

}  // namespace

cli::RunVerb declare_doctor(cli::Arguments arguments) {
  auto options = std::make_shared<DoctorOptions>();
  arguments.flag("--dual", options->dual, "Want two GPUs, and an all-reduce between them");
  arguments.texts("--plugin-path", options->plugin_path,
                  "Folder to search for plugins first; may be repeated");
  return [options](const cli::Terminal& terminal) { return run(*options, terminal); };
}

}  // namespace tally::verbs
