#include "run/randomness.h"

#include "digest/sha256.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <cstring>
#include <initializer_list>

namespace tally::run {
namespace {

uint64_t hashed(std::string_view purpose, std::initializer_list<int64_t> numbers) {
  Sha256 hash;
  hash.update(purpose);
  for (const int64_t number : numbers) hash.update(number);
  const Digest digest = hash.finish();
  uint64_t seed = 0;
  std::memcpy(&seed, digest.bytes().data(), sizeof seed);
  return seed;
}

void seed_generator(at::Generator generator, uint64_t seed) {
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace

void seed_generators(uint64_t seed, c10::Device device) {
  seed_generator(at::detail::getDefaultCPUGenerator(), seed);
  if (!device.is_cpu()) seed_generator(at::globalContext().defaultGenerator(device), seed);
}

uint64_t stream_seed(int64_t seed, int64_t rank) { return hashed("stream", {seed, rank}); }

uint64_t keyed_seed(int64_t seed, int64_t window, int64_t shard, int64_t microbatch) {
  return hashed("keyed", {seed, window, shard, microbatch});
}

}  // namespace tally::run
