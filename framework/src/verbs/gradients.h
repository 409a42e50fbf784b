#pragma once

#include "cli/recipe_options.h"
#include "files/folder_lock.h"
#include "verify/gradient_set.h"

#include <filesystem>
#include <string>

namespace tally::verbs {

/// A --windows of more than this is a mistake: every gradient is kept in memory.
inline constexpr int64_t kMaxWindows = 10000;

/// outputs/gradients/NAME.safetensors: with the ranks of the recipe.
std::filesystem::path gradients_file(const std::string& recipe);
/// outputs/gradients/one-rank/NAME.safetensors
std::filesystem::path reference_file(const std::string& recipe);

/// Keeps every other tally out of the folder of all gradients_file()s. For the whole of a verb that
/// calls what follows.
files::FolderLocks lock_gradients();

/// Starts the ranks of the recipe, which leave the gradients of its first `windows` windows in
/// `file`, with their logs beside it. Throws cli::RanksFailed.
void make_gradients(const cli::RecipeOptions& options, const std::filesystem::path& recipe,
                    int64_t windows, const std::filesystem::path& file);

/// A recipe's reference: the same recipe, with the same shards, on one rank. What lies on the disk
/// is taken when it was computed from this very recipe, data and windows, and `anew` is false.
verify::GradientSet make_reference(const cli::RecipeOptions& options,
                                   const std::filesystem::path& recipe, int64_t windows, bool anew);

}  // namespace tally::verbs
