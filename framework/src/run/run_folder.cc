#include "run/run_folder.h"

#include <fmt/format.h>
#include <tally/error.h>

namespace tally::run {

bool is_reserved(const std::string& name) {
  const std::filesystem::path path = outputs_folder() / name;
  // The last one is what scripts/demo leaves.
  return path == gradients_folder() || path == resume_check_folder() || name == "compare.json";
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return;
  throw DataError(fmt::format(
      "cannot make the folder {}: {}; run where you may write, or change its permissions",
      folder.string(), error.message()));
}

}  // namespace tally::run
