#pragma once

#include <filesystem>
#include <string>

/// Where a run leaves its files, relative to the current folder.
namespace tally::run {

inline std::filesystem::path outputs_folder() { return "outputs"; }
inline std::filesystem::path run_folder(const std::string& recipe) {
  return outputs_folder() / recipe;
}
inline std::filesystem::path metrics_file(const std::string& recipe) {
  return run_folder(recipe) / "metrics.jsonl";
}
inline std::filesystem::path evaluations_file(const std::string& recipe) {
  return run_folder(recipe) / "evaluations.jsonl";
}
inline std::filesystem::path summary_file(const std::string& recipe) {
  return run_folder(recipe) / "summary.json";
}
inline std::filesystem::path resolved_recipe_file(const std::string& recipe) {
  return run_folder(recipe) / "recipe.toml";
}
inline std::filesystem::path logs_folder(const std::string& recipe) {
  return run_folder(recipe) / "logs";
}
inline std::filesystem::path gradients_folder() { return outputs_folder() / "gradients"; }

/// Makes the folder. Throws DataError with the reason when that is not possible.
void make_folder(const std::filesystem::path& folder);

}  // namespace tally::run
