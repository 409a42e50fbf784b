#include "dataset.h"

#include <tally/error.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>

#include <fcntl.h>
#include <unistd.h>

namespace tiny_lm {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kSplits{"train", "validation", "test"};

/// An example takes under 2 KB; a longer line is another kind of file, not worth reading to its
/// end.
constexpr size_t kLongestLine = size_t{1} << 20;

/// A value as the reader of a message would look for it in the file. Arrays and objects go by their
/// type: they may be long, and deep enough to exhaust the stack.
std::string shown(const json& value) {
  if (value.is_structured()) return std::string("an ") + value.type_name();
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

/// Notices a key that stands twice in the record: the parser would silently keep the last one.
class Keys {
 public:
  bool note(int depth, json::parse_event_t event, const json& value) {
    if (depth == 1 && event == json::parse_event_t::key && !seen_.insert(value).second &&
        !repeated_)
      repeated_ = shown(value);
    return true;
  }
  const std::optional<std::string>& repeated() const { return repeated_; }

 private:
  std::set<std::string> seen_;
  std::optional<std::string> repeated_;
};

/// The record of one line. Every complaint starts with FILE:LINE.
class Record {
 public:
  Record(const std::filesystem::path& file, int64_t line, std::span<const char> text)
      : place_(file.string() + ":" + std::to_string(line) + ": ") {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (line > 1 && std::string_view(text.data(), text.size()).starts_with(kByteOrderMark))
      complain(
          "a byte-order mark stands inside the file, as where two files were joined; remove it");
    Keys keys;
    try {
      object_ = json::parse(text.begin(), text.end(), [&](int depth, auto event, json& value) {
        return keys.note(depth, event, value);
      });
    } catch (const json::parse_error& error) {
      complain("malformed JSON at byte " + std::to_string(error.byte) +
               "; every line is one object with input_ids, labels and split");
    } catch (const json::exception&) {
      complain("malformed JSON: a number is out of range");
    }
    if (!object_.is_object()) {
      complain("the line is " + shown(object_) +
               "; every line is one object with input_ids, labels and split");
    }
    if (keys.repeated()) complain(*keys.repeated() + " stands twice in the record; leave one out");
  }

  std::string split() const {
    const json& value = member("split");
    if (value.is_string()) {
      const auto& name = value.get_ref<const std::string&>();
      if (std::find(kSplits.begin(), kSplits.end(), name) != kSplits.end()) return name;
    }
    complain("split is " + shown(value) + R"(; it is "train", "validation" or "test")");
  }

  std::vector<int8_t> ids() const { return tokens("input_ids", false); }
  std::vector<int8_t> labels() const { return tokens("labels", true); }

  [[noreturn]] void complain(const std::string& what) const {
    throw tally::DataError(place_ + what);
  }

 private:
  const json& member(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) complain(std::string(key) + " is missing");
    return *found;
  }

  std::vector<int8_t> tokens(const char* key, bool may_mask) const {
    const json& list = member(key);
    if (!list.is_array()) {
      complain(std::string(key) + " is " + shown(list) + "; it is an array of tokens");
    }
    std::vector<int8_t> result;
    result.reserve(list.size());
    for (const json& value : list) {
      const bool token = value.is_number_integer() && value >= 0 && value < kVocabulary;
      if (!token && !(may_mask && value.is_number_integer() && value == kUnsupervised)) {
        complain(std::string(key) + "[" + std::to_string(result.size()) + "] is " + shown(value) +
                 "; a token is an integer from 0 to " + std::to_string(kVocabulary - 1) +
                 (may_mask ? ", an unsupervised label is -100" : ""));
      }
      result.push_back(value.get<int8_t>());
    }
    return result;
  }

  std::string place_;
  json object_;
};

[[noreturn]] void fail(const std::string& doing, const std::filesystem::path& path, int reason) {
  throw tally::DataError(doing + " " + path.string() + " failed: " + std::strerror(reason));
}

void add_record(Dataset& dataset, const Record& record) {
  const std::vector<int8_t> ids = record.ids();
  const std::vector<int8_t> labels = record.labels();
  if (ids.size() != labels.size()) {
    record.complain("input_ids has " + std::to_string(ids.size()) + " values and labels " +
                    std::to_string(labels.size()) + "; there is one label a token");
  }
  if (ids.empty()) record.complain("input_ids is empty; an example has at least one token");
  if (ids.size() > static_cast<size_t>(kLongest)) {
    record.complain("input_ids has " + std::to_string(ids.size()) +
                    " tokens; the model has positions for " + std::to_string(kLongest));
  }
  dataset[record.split()].add(ids, labels);
}

/// A file being written; removed again unless finish() was reached.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path)
      : path_(std::move(path)),
        descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail("creating", path_, errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!finished_) ::unlink(path_.c_str());
  }

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("writing", path_, errno);
      text.remove_prefix(static_cast<size_t>(written));
    }
  }

  void finish(const std::filesystem::path& name) {
    if (::fsync(descriptor_) != 0) fail("writing", path_, errno);
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail("writing", path_, errno);
    if (::rename(path_.c_str(), name.c_str()) != 0) fail("creating", name, errno);
    finished_ = true;
  }

 private:
  std::filesystem::path path_;
  int descriptor_;
  bool finished_ = false;
};

/// Makes a rename in `folder` survive a power cut. Some file systems cannot; the file is whole in
/// any case.
void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

void Split::add(std::span<const int8_t> ids, std::span<const int8_t> labels) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  starts_.push_back(ids_.size());
}

Split::Example Split::operator[](size_t index) const {
  const size_t start = starts_[index];
  const size_t length = starts_[index + 1] - start;
  return {std::span(ids_).subspan(start, length), std::span(labels_).subspan(start, length)};
}

Dataset read_dataset(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw tally::DataError("reading " + file.string() + " failed: it is not a regular file");
  }
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) fail("reading", file, errno);

  Dataset dataset;
  std::vector<char> buffer(kLongestLine + 2);
  for (int64_t line = 1; in; ++line) {
    in.getline(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    if (in.bad()) fail("reading", file, errno);
    if (in.fail() && !in.eof()) {
      throw tally::DataError(file.string() + ":" + std::to_string(line) + ": the line is longer " +
                             "than " + std::to_string(kLongestLine) +
                             " bytes; every line is one example");
    }
    const auto length = static_cast<size_t>(in.gcount()) - (in.eof() ? 0 : 1);
    const std::span<const char> text = std::span(buffer).first(length);
    const bool blank = std::all_of(text.begin(), text.end(),
                                   [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    if (!blank) add_record(dataset, Record(file, line, text));
  }
  return dataset;
}

void write_dataset(const std::filesystem::path& file, const Dataset& dataset) {
  std::string text;
  for (const std::string_view name : kSplits) {
    const auto split = dataset.find(name);
    if (split == dataset.end()) continue;
    for (size_t i = 0; i < split->second.size(); ++i) {
      const auto [ids, labels] = split->second[i];
      text += json{{"input_ids", ids}, {"labels", labels}, {"split", name}}.dump();
      text += '\n';
    }
  }
  TemporaryFile temporary(file.string() + ".tmp");
  temporary.write(text);
  temporary.finish(file);
  sync_folder(file.parent_path());
}

}  // namespace tiny_lm
