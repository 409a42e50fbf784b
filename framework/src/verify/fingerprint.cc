#include "verify/fingerprint.h"

#include "files/atomic_file.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <fmt/format.h>
#include <tally/error.h>
#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace tally::verify {
namespace {

using nlohmann::json;

std::string digest_of_generator(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return run::digest_of({{"state", generator.get_state()}}).hex();
}

json read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  try {
    return json::parse(stream);
  } catch (const json::exception& error) {
    throw DataError(fmt::format("cannot read {}: {}", file.string(), error.what()));
  }
}

std::filesystem::path file_of(const std::filesystem::path& folder, int64_t rank) {
  return folder / fmt::format("rank-{}.json", rank);
}

/// Empty where the fingerprint does not have it.
std::string digest_in(const json& fingerprint, const char* part, const std::string& name) {
  return fingerprint.at(part).value(name, std::string());
}

}  // namespace

void write_fingerprint(run::RankSession& session, run::TrainingState& state,
                       const std::filesystem::path& folder) {
  json states{
      {"the parameters", run::digest_of(session.parameters().named()).hex()},
      {"the optimizer", run::digest_of(state.optimizer().state()).hex()},
      {"the CPU's random state", digest_of_generator(at::detail::getDefaultCPUGenerator())}};
  if (!session.device().is_cpu()) {
    states["the GPU's random state"] =
        digest_of_generator(at::globalContext().defaultGenerator(session.device()));
  }
  json windows = json::object();
  for (const WindowPlan& plan : state.position().history().last) {
    windows[std::to_string(plan.window)] = run::chain(Digest(), plan).hex();
  }
  files::replace_file(file_of(folder, session.rank()),
                      json{{"states", states}, {"windows", windows}}.dump(2));
}

std::vector<std::string> fingerprint_differences(const std::filesystem::path& a,
                                                 const std::filesystem::path& b, int64_t world) {
  std::vector<std::string> result;
  for (int64_t rank = 0; rank < world; ++rank) {
    const json first = read(file_of(a, rank));
    const json second = read(file_of(b, rank));
    for (const auto& [name, digest] : first.at("states").items()) {
      if (digest_in(second, "states", name) != digest.get<std::string>())
        result.push_back(fmt::format("rank {}: {}", rank, name));
    }
    for (const auto& [window, digest] : second.at("windows").items()) {
      if (digest_in(first, "windows", window) == digest.get<std::string>()) continue;
      result.push_back(
          fmt::format("rank {}: the examples of window {} (the sampler's state)", rank, window));
      break;
    }
  }
  return result;
}

}  // namespace tally::verify
