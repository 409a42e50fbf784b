#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tiny_lm {

inline constexpr int64_t kVocabulary = 4;
inline constexpr int64_t kLongest = 128;  ///< Positions that the model has.
inline constexpr int8_t kUnsupervised = -100;

/// The examples of one split, one after another in two flat arrays: a byte a token and a label.
class Split {
 public:
  struct Example {
    std::span<const int8_t> ids;     ///< In [0, kVocabulary).
    std::span<const int8_t> labels;  ///< As many; a token or kUnsupervised.
  };

  void add(std::span<const int8_t> ids, std::span<const int8_t> labels);
  size_t size() const { return starts_.size() - 1; }
  Example operator[](size_t index) const;
  bool operator==(const Split&) const = default;

 private:
  std::vector<int8_t> ids_;
  std::vector<int8_t> labels_;
  std::vector<size_t> starts_{0};
};

/// Splits by name: "train", "validation", "test". A split without examples is absent.
using Dataset = std::map<std::string, Split, std::less<>>;

/// Reads JSON lines: one object a line with `input_ids`, `labels` and `split`; other keys and empty
/// lines are skipped, and so is a byte-order mark at the file's start. The id of an example is its
/// place among the lines of its split. A record without any target is one: it takes its place in a
/// window and counts nothing.
/// Throws tally::DataError: `FILE:LINE: ...`, lines counted by LF, for a malformed record and a key
/// that stands twice in one, with the system's reason when the file cannot be read.
Dataset read_dataset(const std::filesystem::path& file);

/// Writes what read_dataset reads, beside `file` first and renamed when it is safely on the disk:
/// whoever looks sees the whole file or none. Throws tally::DataError with the system's reason.
void write_dataset(const std::filesystem::path& file, const Dataset& dataset);

}  // namespace tiny_lm
