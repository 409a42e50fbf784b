#include "verify/gradient_set.h"

#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <map>

namespace tally::verify {
namespace {

using nlohmann::json;

constexpr const char* kRun = "run";
constexpr const char* kShard = "shard-";

json describe(const GradientSet& set) {
  json windows = json::array();
  for (const WindowGradient& window : set.windows) {
    json parameters = json::array();
    for (const NamedTensor& gradient : window.total) parameters.push_back(gradient.name);
    windows.push_back({{"window", window.window},
                       {"counts_by_rank", window.counts_by_rank},
                       {"parameters", parameters}});
  }
  return {{"recipe", set.recipe},
          {"digest", set.digest.hex()},
          {"chain", set.chain.hex()},
          {"data", set.data.hex()},
          {"world", set.world},
          {"shards", set.shards},
          {"accumulation", set.accumulation},
          {"windows", windows}};
}

GradientSet read_description(const std::string& text) {
  const json run = json::parse(text);
  GradientSet set;
  set.recipe = run.at("recipe").get<std::string>();
  set.digest = Digest::from_hex(run.at("digest").get<std::string>());
  set.chain = Digest::from_hex(run.at("chain").get<std::string>());
  set.data = Digest::from_hex(run.at("data").get<std::string>());
  set.world = run.at("world").get<int64_t>();
  set.shards = run.at("shards").get<int64_t>();
  set.accumulation = run.at("accumulation").get<int64_t>();
  for (const json& window : run.at("windows")) {
    WindowGradient gradient;
    gradient.window = window.at("window").get<int64_t>();
    gradient.counts_by_rank = window.at("counts_by_rank").get<std::vector<int64_t>>();
    for (const json& name : window.at("parameters"))
      gradient.total.push_back({name.get<std::string>(), {}});
    set.windows.push_back(std::move(gradient));
  }
  return set;
}

std::string prefix_of(int64_t window) { return fmt::format("window-{}/", window); }

}  // namespace

void save_gradients(const std::filesystem::path& file, const GradientSet& set) {
  std::vector<NamedTensor> tensors;
  for (const WindowGradient& window : set.windows) {
    const std::string prefix = prefix_of(window.window);
    for (const NamedTensor& gradient : window.total)
      tensors.push_back({prefix + gradient.name, gradient.tensor});
    for (size_t shard = 0; shard < window.by_shard.size(); ++shard) {
      tensors.push_back({fmt::format("{}{}{}", prefix, kShard, shard), window.by_shard[shard]});
    }
  }
  checkpoint::save_safetensors(file, tensors, {{kRun, describe(set).dump()}});
}

GradientSet load_gradients(const std::filesystem::path& file) {
  const checkpoint::TensorFile content = checkpoint::load_safetensors(file);
  try {
    GradientSet set = read_description(content.metadata.at(kRun));
    std::map<std::string, at::Tensor> by_name;
    for (const NamedTensor& tensor : content.tensors) by_name.emplace(tensor.name, tensor.tensor);
    for (WindowGradient& window : set.windows) {
      const std::string prefix = prefix_of(window.window);
      for (NamedTensor& gradient : window.total)
        gradient.tensor = by_name.at(prefix + gradient.name);
      for (int64_t shard = 0; shard < set.shards; ++shard) {
        const auto found = by_name.find(fmt::format("{}{}{}", prefix, kShard, shard));
        if (found != by_name.end()) window.by_shard.push_back(found->second);
      }
    }
    return set;
  } catch (const std::out_of_range&) {
    throw DataError(fmt::format(
        "{} holds no gradients of a run; make it anew with `tally reference`", file.string()));
  } catch (const json::exception& error) {
    throw DataError(fmt::format("{} cannot be read: {}; make it anew with `tally reference`",
                                file.string(), error.what()));
  }
}

}  // namespace tally::verify
