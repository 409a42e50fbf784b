#include "train/policy_sync.h"

namespace tally::train {

using distributed::CollectiveKind;

std::unique_ptr<Work> PolicySync::all_reduce(at::Tensor tensor, ReduceOp op) {
  return group_.all_reduce(std::move(tensor), op, CollectiveKind::kPolicy, calls_++);
}

std::unique_ptr<Work> PolicySync::all_gather(at::Tensor output, at::Tensor input) {
  return group_.all_gather(std::move(output), std::move(input), CollectiveKind::kPolicy, calls_++);
}

std::unique_ptr<Work> PolicySync::reduce_scatter(at::Tensor output, at::Tensor input) {
  return group_.reduce_scatter(std::move(output), std::move(input), CollectiveKind::kPolicy,
                               calls_++);
}

std::unique_ptr<Work> PolicySync::all_to_all(at::Tensor output, at::Tensor input) {
  return group_.all_to_all(std::move(output), std::move(input), CollectiveKind::kPolicy, calls_++);
}

std::unique_ptr<Work> PolicySync::broadcast(at::Tensor tensor, int64_t root) {
  return group_.broadcast(std::move(tensor), root, CollectiveKind::kPolicy, calls_++);
}

}  // namespace tally::train
