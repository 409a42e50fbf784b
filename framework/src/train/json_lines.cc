#include "train/json_lines.h"

#include "files/atomic_file.h"

#include <fmt/format.h>
#include <tally/error.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace tally::train {
namespace {

/// The lines up to that of window `windows` - 1. A crash may have torn the last.
std::string lines_before(const std::filesystem::path& file, int64_t windows) {
  using nlohmann::json;
  std::ifstream stream(file);
  std::string kept;
  for (std::string line; std::getline(stream, line);) {
    const json entry = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!entry.is_object() || !entry.contains("window") || !entry["window"].is_number_integer())
      break;
    if (entry["window"].get<int64_t>() >= windows) break;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

JsonLines::~JsonLines() {
  if (stream_ != nullptr) std::fclose(stream_);
}

void JsonLines::open(int64_t windows) {
  files::replace_file(path_, windows == 0 ? "" : lines_before(path_, windows));
  stream_ = std::fopen(path_.c_str(), "ae");
  if (stream_ == nullptr) {
    throw DataError(
        fmt::format("cannot write {}: {}; check the folder's permissions and the free space",
                    path_.string(), std::strerror(errno)));
  }
}

void JsonLines::append(const std::string& object) {
  const std::string text = object + "\n";
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size() ||
      std::fflush(stream_) != 0) {
    throw DataError(fmt::format("cannot write {}: {}; free some space and run again",
                                path_.string(), std::strerror(errno)));
  }
}

}  // namespace tally::train
