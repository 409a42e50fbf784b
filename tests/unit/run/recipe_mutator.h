#pragma once

#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace tally::run {

/// Damages a recipe's text in ways in which people, editors and disks do. Equal seeds damage alike.
class RecipeMutator {
 public:
  explicit RecipeMutator(uint32_t seed) : random_(seed) {}

  std::string mutated(std::string text) {
    for (size_t i = 1 + below(3); i > 0; --i) mutate(text);
    return text;
  }

 private:
  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }

  std::string repeated(const std::string& part, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += part;
    return text;
  }

  size_t length() {
    constexpr size_t kLengths[] = {1, 5, 33, 300, 20000};
    return kLengths[below(std::size(kLengths))];
  }

  /// What may stand after `key =`, or is wrong there.
  std::string value() {
    static const std::vector<std::string> kValues{"0",
                                                  "-1",
                                                  "1",
                                                  "2",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "9223372036854775808",
                                                  "0.0",
                                                  "-0.0",
                                                  "0.5",
                                                  "1e308",
                                                  "1e-308",
                                                  "1e999",
                                                  "inf",
                                                  "-inf",
                                                  "nan",
                                                  "true",
                                                  "false",
                                                  "\"\"",
                                                  "\".\"",
                                                  "\"..\"",
                                                  "\"../../x\"",
                                                  "\"/\"",
                                                  "\"a\\u0000b\"",
                                                  "\"\\u202e\"",
                                                  "\"auto\"",
                                                  "\"keyed\"",
                                                  "\"adamw\"",
                                                  "\"cuda\"",
                                                  "\"tiny_lm\"",
                                                  "\"./x.so\"",
                                                  "\"token_mean\"",
                                                  "\"train\"",
                                                  "[]",
                                                  "[1]",
                                                  "[0]",
                                                  "[-1, 9223372036854775807]",
                                                  "[[]]",
                                                  "{}",
                                                  "{ plugin = \"no_sync\" }",
                                                  "1979-05-27",
                                                  "07:32:00",
                                                  "0x10",
                                                  "1_000",
                                                  "",
                                                  "= 1"};
    if (below(8) == 0) return '"' + std::string(length(), 'v') + '"';
    return kValues[below(kValues.size())];
  }

  std::string key() {
    static const std::vector<std::string> kKeys{
        "name",         "config",        "seed",          "rng",       "plugin",     "hook",
        "ranks",        "timeout",       "threads",       "device",    "backend",    "folder",
        "updates",      "stop_at",       "clip_norm",     "every",     "at",         "keep",
        "async",        "on_error",      "grace_seconds", "split",     "batch_size", "shards",
        "accumulation", "learning_rate", "weight_decay",  "momentum",  "beta1",      "epsilon",
        "dropout",      "prompt_length", "labels",        "data_seed", "noise",      "split_length",
        "bucket_bytes"};
    if (below(8) == 0) return std::string(length(), 'k');
    return kKeys[below(kKeys.size())];
  }

  std::string section() {
    static const std::vector<std::string> kSections{
        "run",      "data", "train",   "optimizer",    "window",      "checkpoint",
        "evaluate", "task", "sampler", "loss_reducer", "sync_policy", "state"};
    return kSections[below(kSections.size())];
  }

  std::string snippet() {
    switch (below(8)) {
      case 0:
        return repeated("a.", length()) + "a = 1\n";
      case 1:
        return repeated("[", length());
      case 2:
        return "a = " + repeated("{a=", length());
      case 3:
        return "[" + section() + "]\n" + key() + " = " + value() + "\n";
      case 4:
        return "[[" + section() + "]]\n";
      case 5:
        return section() + "." + key() + " = " + value() + "\n";
      case 6:
        return std::string(1, static_cast<char>(below(256)));
      default:
        return below(2) ? "\"\"\"" : "'''";
    }
  }

  void mutate(std::string& text) {
    const size_t place = below(text.size() + 1);
    switch (below(8)) {
      case 0:
        if (place < text.size()) text[place] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(place, 1 + below(20));
        break;
      case 2:
        text.insert(place, text.substr(below(text.size() + 1), below(60)));
        break;
      case 3:
        text.insert(place, snippet());
        break;
      case 4:
        text.insert(line_after(text, place), snippet());
        break;
      case 5:
        text.resize(below(4) == 0 ? place : text.size());
        break;
      default:
        replace_value(text, place);
    }
  }

  static size_t line_after(const std::string& text, size_t place) {
    const size_t end = text.find('\n', place);
    return end == std::string::npos ? text.size() : end + 1;
  }

  void replace_value(std::string& text, size_t place) {
    const size_t begin = text.find("= ", place);
    if (begin == std::string::npos) return;
    const size_t end = line_after(text, begin);
    text.replace(begin, end - begin, "= " + value() + "\n");
  }

  std::mt19937 random_;
};

}  // namespace tally::run
