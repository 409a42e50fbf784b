#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

namespace tally::train {

/// A file with one JSON object a line, each with a "window". One thread.
class JsonLines {
 public:
  explicit JsonLines(std::filesystem::path file) : path_(std::move(file)) {}
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  /// Makes the file. A run that goes on after `windows` windows keeps their lines. Throws DataError
  /// when it cannot be made.
  void open(int64_t windows);
  /// `object`: without a line break. It is with the operating system when this returns. Throws
  /// DataError when it cannot be written.
  void append(const std::string& object);

 private:
  std::filesystem::path path_;
  std::FILE* stream_ = nullptr;
};

}  // namespace tally::train
