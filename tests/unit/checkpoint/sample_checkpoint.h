#pragma once

#include "checkpoint/checkpoint.h"
#include "sample_tensors.h"
#include "support/temporary_folder.h"

#include <filesystem>
#include <string>
#include <vector>

namespace tally::checkpoint {

/// Content whose every value depends on `seed`.
inline CheckpointContent sample_content(int64_t seed) {
  CheckpointContent content;
  content.model = {{"embedding.weight", at::full({4, 3}, static_cast<double>(seed), at::kFloat)},
                   {"head.bias", at::arange(seed, seed + 5, at::kDouble)}};
  content.optimizer = {{"step", at::scalar_tensor(seed, at::kLong)},
                       {"momentum.head.bias", at::full({5}, 0.5, at::kFloat)}};
  content.recipe = "name = \"correct\"\nseed = " + std::to_string(seed) + "\n";
  content.data_lock = "{\"format\":\"tally-data-lock/1\",\"files\":[]}\n";
  content.tally_version = "0.1.0";
  content.plugins = {{"tiny_lm", sha256("tiny_lm")}};
  content.lineage = {{sha256("conditions"), 0}};
  return content;
}

inline StateBundle sample_states(int64_t seed, int64_t rank) {
  StateBundle states;
  states.writer("rng_state/1")->tensor("cpu", at::full({16}, seed + rank, at::kByte));
  if (rank == 0) states.writer("sampler_state/1")->integer("windows", seed);
  return states;
}

/// Saves as the ranks and then rank 0 do; a failure is discarded, as rank 0 does.
inline void save_sample(const std::filesystem::path& folder, int64_t window, int64_t seed,
                        int64_t world = 2, files::FileSystem& system = files::FileSystem::real()) {
  const CheckpointWriter writer(folder, window, world, system);
  try {
    std::vector<files::FileEntry> entries;
    for (int64_t rank = 0; rank < world; ++rank)
      entries.push_back(writer.write_rank_file(rank, sample_states(seed, rank)));
    writer.publish(sample_content(seed), entries);
  } catch (...) {
    writer.discard();
    throw;
  }
}

/// The seed of a checkpoint, once every value of it was found to be of that seed.
inline int64_t seed_of(const std::filesystem::path& step) {
  const CheckpointReader reader = CheckpointReader::open(step);
  const std::vector<NamedTensor> optimizer = reader.optimizer();
  const int64_t seed = tensor_of(optimizer, "step").item<int64_t>();
  const CheckpointContent expected = sample_content(seed);
  const std::vector<NamedTensor> model = reader.model();
  EXPECT_EQ(model.size(), expected.model.size());
  for (const auto& [name, tensor] : expected.model)
    expect_same(tensor_of(model, name), tensor, name);
  for (const auto& [name, tensor] : expected.optimizer)
    expect_same(tensor_of(optimizer, name), tensor, name);
  EXPECT_EQ(reader.recipe(), expected.recipe);
  EXPECT_EQ(reader.data_lock(), expected.data_lock);
  for (int64_t rank = 0; rank < reader.world(); ++rank)
    expect_same(reader.rank_state(rank).reader("rng_state/1")->tensor("cpu"),
                at::full({16}, seed + rank, at::kByte), "rng of rank " + std::to_string(rank));
  EXPECT_EQ(reader.rank_state(0).reader("sampler_state/1")->integer("windows"), seed);
  return seed;
}

}  // namespace tally::checkpoint
