#include "run/device.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <tally/error.h>
#include <torch/cuda.h>
#include <torch/torch.h>

#include <cstdlib>

namespace tally::run {

using distributed::Membership;
using distributed::Transport;

c10::Device choose_device(const Settings& settings, const Membership& self) {
  const auto gpus = static_cast<int64_t>(torch::cuda::device_count());
  if (settings.device == "cuda" && gpus == 0) {
    throw ConfigError(
        "run.device is \"cuda\", but this host has no GPU that LibTorch can use; set run.device = "
        "\"cpu\" or \"auto\"");
  }
  if (settings.device == "cpu" || gpus == 0) return c10::kCPU;
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(self.local_rank % gpus)};
}

Transport choose_transport(const Settings& settings, const Membership& self, c10::Device device) {
  if (settings.backend == "gloo" || self.world == 1) return Transport::kGloo;
  if (settings.backend == "nccl") {
    if (!device.is_cuda())
      throw ConfigError(
          "run.backend is \"nccl\", but the gradients are on the CPU; use \"gloo\" or \"auto\"");
    return Transport::kNccl;
  }
  const bool own_gpu =
      device.is_cuda() && self.local_world <= static_cast<int64_t>(torch::cuda::device_count());
  return own_gpu ? Transport::kNccl : Transport::kGloo;
}

void make_deterministic() {
  // cuBLAS is deterministic with a workspace of fixed size alone.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

void use_device(c10::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.setDevice(device);
}

void wait_for_device(c10::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

}  // namespace tally::run
