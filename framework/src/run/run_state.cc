#include "run/run_state.h"

#include "run/prefixed_reader.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

namespace tally::run {
namespace {

using nlohmann::json;

constexpr const char* kSampler = "sampler.";
constexpr const char* kWindows = "history.windows";
constexpr const char* kChain = "history.chain";
constexpr const char* kLast = "history.last";

std::string to_text(const std::deque<WindowPlan>& plans) {
  json list = json::array();
  for (const WindowPlan& plan : plans)
    list.push_back({{"window", plan.window}, {"shards", plan.shards}});
  return list.dump();
}

std::shared_ptr<const MemoryState> record_sampler(RankSession& session) {
  auto state = std::make_shared<MemoryState>();
  session.job().sampler.call([&](const Sampler& sampler) { sampler.save_state(*state); });
  return state;
}

std::deque<WindowPlan> from_text(const std::string& text) {
  std::deque<WindowPlan> plans;
  try {
    for (const json& plan : json::parse(text)) {
      plans.push_back(
          {plan.at("window").get<int64_t>(), plan.at("shards").get<std::vector<Shard>>()});
    }
  } catch (const json::exception& error) {
    throw DataError(fmt::format("the history of drawn windows in the checkpoint cannot be read: {}",
                                error.what()));
  }
  return plans;
}

}  // namespace

RunState::RunState(RankSession& session) : session_(session), sampler_(record_sampler(session)) {}

void RunState::finished(const WindowPlan& plan, std::shared_ptr<const MemoryState> sampler) {
  history_.append(plan);
  sampler_ = std::move(sampler);
}

void RunState::save_sampler(StateWriter& writer) const {
  sampler_->replay(writer, kSampler);
  writer.integer(kWindows, history_.windows);
  writer.text(kChain, history_.chain.hex());
  writer.text(kLast, to_text(history_.last));
}

void RunState::load_sampler(const StateReader& reader) {
  WindowHistory history;
  history.windows = reader.integer(kWindows);
  history.chain = Digest::from_hex(reader.text(kChain));
  history.last = from_text(reader.text(kLast));
  session_.job().sampler.call(
      [&](Sampler& sampler) { sampler.load_state(PrefixedReader(reader, kSampler)); });
  history_ = std::move(history);
  sampler_ = record_sampler(session_);
}

}  // namespace tally::run
