#pragma once

#include "digest/sha256.h"
#include "recipe/section.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tally::recipe {

/// Where a recipe's values come from. `--set` beats the recipe, the recipe beats its config.
struct Sources {
  std::filesystem::path recipe;
  std::optional<std::filesystem::path> config;  ///< Replaces the config that the recipe names.
  std::vector<std::string> sets;  ///< "key=value"; the value is TOML, or else a string.
};

/// A recipe and its config, merged table by table (arrays as a whole), every value with its origin.
class Recipe {
 public:
  /// Throws ConfigError with file and line for a file that is absent or no TOML, and for a --set
  /// without '='.
  static Recipe load(const Sources& sources);

  std::string name() const;
  /// The table at a dotted path; empty when nobody wrote it. "" is the root.
  Section section(std::string_view path) const;
  /// The tables of an array of tables, such as `[[state]]`, in file order.
  std::vector<Section> sections(std::string_view path) const;

  /// Throws ConfigError for the first key that nobody has read: file, line, and the nearest key
  /// that was asked for in its section.
  void reject_unread() const;

  /// TOML that loads to the same values, defaults included, and names no other recipe file. Plugin
  /// paths are absolute.
  std::string resolved() const;
  /// SHA-256 of resolved().
  Digest digest() const;
  /// One line a value: key, value, origin; what `tally recipe show` prints.
  std::string with_origins() const;
  /// [{"key": ..., "value": ..., "origin": ...}], as JSON text.
  std::string with_origins_json() const;

 private:
  explicit Recipe(std::shared_ptr<Document> document);
  std::shared_ptr<Document> document_;
};

}  // namespace tally::recipe
