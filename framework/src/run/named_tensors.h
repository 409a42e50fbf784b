#pragma once

#include "plugin/hooked.h"

#include <tally/task.h>

#include <string>
#include <vector>

namespace tally::run {

/// Parameters and buffers of a task, under their names in a checkpoint. [trainer]
std::vector<NamedTensor> model_of(const plugin::Hooked<Task>& task);

/// Copies `saved` into `targets` by name, in place. Throws DataError when they do not fit, naming
/// the first few tensors that are missing, unexpected, or of another shape or dtype; nothing is
/// changed then. `what`: subject of the sentence, as "the model in step-0050"; `remedy`: its end.
void copy_by_name(const std::vector<NamedTensor>& saved, const std::vector<NamedTensor>& targets,
                  const std::string& what, const std::string& remedy);

}  // namespace tally::run
