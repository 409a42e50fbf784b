#pragma once

#include <filesystem>
#include <string>

namespace tally::run {

/// Everything but checkpoints that tally writes lies here, relative to the current folder.
inline std::filesystem::path outputs_folder() { return "outputs"; }
inline std::filesystem::path gradients_folder() { return outputs_folder() / "gradients"; }
inline std::filesystem::path resume_check_folder() { return outputs_folder() / "resume-check"; }

/// Whether outputs/NAME is none that a run of this name may have.
bool is_reserved(const std::string& name);

/// Where one run leaves its files.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  static RunFolder of(const std::string& recipe) { return RunFolder(outputs_folder() / recipe); }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path evaluations() const { return path_ / "evaluations.jsonl"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path resolved_recipe() const { return path_ / "recipe.toml"; }
  std::filesystem::path logs() const { return path_ / "logs"; }

 private:
  std::filesystem::path path_;
};

/// Makes the folder. Throws DataError with the reason when that is not possible.
void make_folder(const std::filesystem::path& folder);

}  // namespace tally::run
