#include "run/drawn_windows.h"

#include "files/atomic_file.h"
#include "run/plan_chain.h"

#include <nlohmann/json.hpp>

namespace tally::run {

DrawnWindows draw_windows(Job& job, int64_t windows) {
  DrawnWindows drawn;
  const ExampleTable examples = job.task.call([](Task& task) { return task.examples("train"); });
  job.sampler.call([&](Sampler& sampler) {
    sampler.prepare(examples);
    for (int64_t window = 0; window < windows; ++window) {
      std::optional<WindowPlan> plan = sampler.plan(window);
      if (!plan) break;
      drawn.chain = chain(drawn.chain, *plan);
      drawn.chains.push_back(drawn.chain);
      drawn.plans.push_back(std::move(*plan));
    }
  });
  return drawn;
}

void write_windows(const DrawnWindows& drawn, const std::filesystem::path& file) {
  files::replace_file(file, [&](files::FileWriter& writer) {
    for (size_t i = 0; i < drawn.plans.size(); ++i) {
      const nlohmann::json line{{"window", drawn.plans[i].window},
                                {"chain", drawn.chains[i].hex()},
                                {"shards", drawn.plans[i].shards}};
      writer.append(line.dump() + "\n");
    }
  });
}

}  // namespace tally::run
