#pragma once

#include <tally/config.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tally::recipe {

struct Document;

/// One table of the resolved recipe. Reading marks a key as known, and so does `has`; a fallback
/// that was used becomes part of the resolved recipe with the origin "default". A section that
/// nobody wrote is empty. Copies refer to the same table.
class Section final : public Config {
 public:
  Section(std::shared_ptr<Document> document, std::string path);

  bool has(std::string_view key) const override;
  int64_t integer(std::string_view key,
                  std::optional<int64_t> fallback = std::nullopt) const override;
  double number(std::string_view key, std::optional<double> fallback = std::nullopt) const override;
  bool boolean(std::string_view key, std::optional<bool> fallback = std::nullopt) const override;
  std::string text(std::string_view key,
                   std::optional<std::string> fallback = std::nullopt) const override;
  std::filesystem::path path(std::string_view key, std::optional<std::filesystem::path> fallback =
                                                       std::nullopt) const override;
  std::vector<int64_t> integers(std::string_view key, std::optional<std::vector<int64_t>> fallback =
                                                          std::nullopt) const override;
  [[noreturn]] void reject(std::string_view key, std::string_view why) const override;

  /// `text`, as one of `choices`; rejected otherwise with the choices named.
  std::string choice(std::string_view key, std::string_view fallback,
                     const std::vector<std::string>& choices) const;

  /// Dotted path from the root: "sampler.inner", "state[1]", "" for the root.
  const std::string& path() const { return path_; }
  /// Where the section was written, "recipes/correct.toml:7"; for the root, and for a section that
  /// no file wrote, the recipe file, where it would be.
  std::string origin() const;
  /// Folder of the file that wrote `key`; relative paths in the value start there. The current
  /// folder, ".", for a --set or a fallback.
  std::string folder_of(std::string_view key) const;
  /// The table `key` of this one; throws ConfigError when something else stands there.
  Section child(std::string_view key) const;
  /// The table `key` of the whole recipe, under the same condition.
  Section of_root(std::string_view key) const;

 private:
  template <class T, class Convert>
  T read(std::string_view key, const std::optional<T>& fallback, std::string_view wanted,
         std::string_view placeholder, Convert convert) const;
  [[noreturn]] void reject_missing(std::string_view key, std::string_view placeholder) const;

  std::shared_ptr<Document> document_;
  std::string path_;
};

}  // namespace tally::recipe
