#pragma once

#include "plugin/hooked.h"

#include <c10/core/Device.h>
#include <tally/loss_reducer.h>
#include <tally/task.h>

#include <vector>

namespace tally::run {

/// The task's terms, in the units that the reducer counts in. Throws PluginError for a task without
/// a term, and for a term that is not additive unless the reducer is made for such.
std::vector<TermInfo> terms_of(const plugin::Hooked<Task>& task,
                               const plugin::Hooked<LossReducer>& reducer);

/// The batch with every tensor on the device; the copies may still be under way on its stream.
Batch on_device(const Batch& batch, c10::Device device);

/// The task's losses of a batch. Throws PluginError unless there is one a term, each shaped like
/// the term's weights. [trainer]
std::vector<at::Tensor> forward(const plugin::Hooked<Task>& task, const Batch& batch);

/// N of each term in a batch on the CPU, in the reducer's unit. Throws PluginError unless task and
/// reducer give one non-negative number for each of `terms` terms. [loader]
std::vector<int64_t> count(const plugin::Hooked<LossReducer>& reducer, const Batch& batch,
                           size_t terms);

/// S of each term in a batch, as the reducer itself reduces it: float64 [terms] on the losses'
/// device, without gradients. Throws PluginError unless the reducer gives scalars. [trainer]
at::Tensor term_sums(const plugin::Hooked<LossReducer>& reducer, const Batch& batch,
                     const std::vector<at::Tensor>& losses);

/// What the reducer makes of a batch: the scalar to differentiate. Throws PluginError unless it is
/// one. [trainer]
at::Tensor reduce(const plugin::Hooked<LossReducer>& reducer, const Batch& batch,
                  const std::vector<at::Tensor>& losses, const at::Tensor& scales);

}  // namespace tally::run
