#pragma once

#include "cli/recipe_options.h"
#include "files/folder_lock.h"
#include "verify/gradient_set.h"

#include <filesystem>
#include <string>

namespace tally::verbs {

/// A --windows of more than this is a mistake: every gradient is kept in memory.
inline constexpr int64_t kMaxWindows = 10000;

/// outputs/gradients/NAME.safetensors
std::filesystem::path gradients_file(const std::string& recipe);

/// Keeps every other tally out of the folder of all gradients_file()s. For the whole of a verb that
/// calls what follows.
files::FolderLocks lock_gradients();

/// Starts the ranks of the recipe, which leave the gradients of its first `windows` windows in
/// gradients_file(name). Returns the exit code, 0 when the file is there.
int launch_gradients(const cli::RecipeOptions& options, const std::filesystem::path& recipe,
                     int64_t windows);

/// The reference's gradients: those on the disk when they were computed from this very recipe, data
/// and windows, else made anew. Throws Error when that fails.
verify::GradientSet ensure_reference(const cli::RecipeOptions& options,
                                     const std::filesystem::path& recipe, int64_t windows);

}  // namespace tally::verbs
