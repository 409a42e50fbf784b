#pragma once

#include "checkpoint/manifest.h"
#include "checkpoint/state_file.h"

#include <tally/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tally::checkpoint {

/// What rank 0 saves of a run after a window.
struct CheckpointContent {
  std::vector<NamedTensor> model;      ///< By the names of PyTorch's state_dict.
  std::vector<NamedTensor> optimizer;  ///< Any names.
  std::string recipe;                  ///< The resolved recipe, TOML.
  std::string data_lock;               ///< DataLock::to_json().
  std::string tally_version;
  std::map<std::string, Digest> plugins;  ///< SHA-256 of each plugin file, by the plugin's name.
  Lineage lineage;                        ///< At least one link.
};

/// "step-0050": the folder of the checkpoint after 50 windows.
std::string step_name(int64_t window);
/// The window of a step folder's name; nullopt for another name.
std::optional<int64_t> window_of_step(const std::string& name);

/// Writes folder/step-NNNN in two phases: every rank writes its own file into a hidden staging
/// folder that all ranks share, then rank 0 adds the rest and publishes all at once, in exchange
/// for a step that is there already. Every member throws DataError with path, cause and remedy; the
/// older checkpoint then stands. One save of a window at a time.
class CheckpointWriter {
 public:
  /// Touches nothing yet. [every rank]
  CheckpointWriter(const std::filesystem::path& folder, int64_t window, int64_t world,
                   files::FileSystem& system = files::FileSystem::real());

  const std::filesystem::path& target() const { return target_; }
  std::filesystem::path staging() const;

  /// Phase 1; the entry is for rank 0's publish(). [every rank]
  files::FileEntry write_rank_file(int64_t rank, const StateBundle& states) const;
  /// Phase 2, once every rank's entry is there. When it throws, nothing of the step remains.
  /// [rank 0]
  void publish(const CheckpointContent& content,
               const std::vector<files::FileEntry>& rank_files) const;
  /// Deletes what the ranks wrote, when one of them failed. [rank 0]
  void discard() const;

 private:
  files::FileSystem& system_;
  std::filesystem::path target_;
  int64_t window_;
  int64_t world_;
};

/// A checkpoint whose every byte agreed with its manifest when it was opened. Files are checked
/// again as they are read, so a later change is an error too. Members throw DataError.
class CheckpointReader {
 public:
  static CheckpointReader open(const std::filesystem::path& step,
                               files::FileSystem& system = files::FileSystem::real());

  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  int64_t window() const { return manifest_.window; }
  int64_t world() const { return manifest_.world; }

  std::vector<NamedTensor> model() const;
  std::vector<NamedTensor> optimizer() const;
  StateBundle rank_state(int64_t rank) const;
  std::string recipe() const;
  std::string data_lock() const;

 private:
  CheckpointReader(std::filesystem::path path, Manifest manifest, files::FileSystem& system);
  TensorFile tensors(const char* name) const;
  std::string text(const char* name) const;

  std::filesystem::path path_;
  Manifest manifest_;
  files::FileSystem* system_;
};

/// The step folders in a checkpoint folder, newest first, valid or not; empty when it is absent.
std::vector<std::filesystem::path> list_steps(
    const std::filesystem::path& folder, files::FileSystem& system = files::FileSystem::real());

struct DamagedCheckpoint {
  std::filesystem::path path;
  std::string reason;  ///< Text of the error.
};

/// The steps whose manifests can be read, newest window first; `damaged` receives the others.
std::vector<Step> known_steps(const std::filesystem::path& folder,
                              std::vector<DamagedCheckpoint>* damaged,
                              files::FileSystem& system = files::FileSystem::real());

/// The first of these steps that verifies. `damaged` receives those before it.
std::optional<CheckpointReader> first_whole(const std::vector<Step>& steps,
                                            std::vector<DamagedCheckpoint>* damaged,
                                            files::FileSystem& system = files::FileSystem::real());

/// Deletes a step. Throws DataError when it cannot be taken out of the list of steps; at no moment
/// a part of it stands there. [rank 0]
void remove_step(const std::filesystem::path& step,
                 files::FileSystem& system = files::FileSystem::real());

/// Deletes the staging folders that a crash left. No save may be under way. [rank 0]
void remove_unfinished(const std::filesystem::path& folder,
                       files::FileSystem& system = files::FileSystem::real());

}  // namespace tally::checkpoint
