#pragma once

#include "checkpoint/safetensors.h"

#include <tally/state_provider.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tally::checkpoint {

/// What the state providers of one rank save: named values by state_id ("NAME/REVISION"), kept as
/// one safetensors file. A value NAME of state ID is the tensor "ID/NAME"; an integer is an I64
/// scalar, a text stands in the metadata.
class StateBundle {
 public:
  /// A writer into this bundle, which must outlive it. Throws PluginError for an id that is not
  /// NAME/REVISION or that has a writer already. The writer throws PluginError for a second value
  /// of one name, an empty name, a text that is not UTF-8, and a dtype or layout that a file cannot
  /// hold.
  std::unique_ptr<StateWriter> writer(const std::string& state_id);
  /// A reader of this bundle, which must outlive it. Throws DataError naming file and id when the
  /// state is absent. The reader's tensors share memory with the bundle.
  std::unique_ptr<StateReader> reader(const std::string& state_id) const;

  const std::set<std::string>& state_ids() const { return state_ids_; }
  bool has(const std::string& state_id) const { return state_ids_.contains(state_id); }

  /// `extra`: further metadata; its keys hold no '/'.
  void write(files::FileWriter& file, const Metadata& extra = {}) const;
  /// Throws DataError naming the file when it is no state file.
  static StateBundle read(files::FileReader& file);
  /// Metadata beside the states, such as the rank.
  const Metadata& extra() const { return extra_; }

 private:
  class Writer;
  class Reader;

  std::string file_ = "a state that was not saved";
  std::set<std::string> state_ids_;
  std::map<std::string, at::Tensor> tensors_;
  std::map<std::string, std::string> texts_;
  Metadata extra_;
};

}  // namespace tally::checkpoint
