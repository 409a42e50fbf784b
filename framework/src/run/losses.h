#pragma once

#include "plugin/hooked.h"

#include <c10/core/Device.h>
#include <tally/loss_reducer.h>
#include <tally/task.h>

#include <vector>

namespace tally::run {

/// The batch with every tensor on the device; the copies may still be under way on its stream.
Batch on_device(const Batch& batch, c10::Device device);

/// The task's losses of a batch. Throws PluginError unless there is one a term, each shaped like
/// the term's weights. [trainer]
std::vector<at::Tensor> forward(const plugin::Hooked<Task>& task, const Batch& batch);

/// N of each term in a batch on the CPU, in the reducer's unit. Throws PluginError unless task and
/// reducer give one non-negative number for each of `terms` terms. [loader]
std::vector<int64_t> count(const plugin::Hooked<LossReducer>& reducer, const Batch& batch,
                           size_t terms);

/// S of a term in a batch: the sum of weight * loss over supervised positions, float64, on the
/// losses' device.
at::Tensor weighted_sum(const at::Tensor& losses, const at::Tensor& weights);

}  // namespace tally::run
