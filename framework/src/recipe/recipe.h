#pragma once

#include "digest/sha256.h"
#include "recipe/section.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tally::recipe {

/// An option of the command line that writes one key of the recipe.
struct Option {
  const char* name;  ///< "--ranks", as a message says it; a literal.
  std::string set;   ///< "run.ranks=2"
};

/// Where a recipe's values come from. Options beat `--set`, which beats the recipe, which beats its
/// config.
struct Sources {
  std::filesystem::path recipe;
  std::optional<std::filesystem::path> config;  ///< Replaces the config that the recipe names.
  std::vector<std::string> sets;  ///< "key=value"; the value is TOML, or else a string.
  std::vector<Option> options = {};
};

/// A recipe and its config, merged table by table (arrays as a whole), every value with its origin.
/// Copies refer to the same values. One thread.
class Recipe {
 public:
  /// Throws ConfigError with file and line for a file that is absent or no TOML, for a name that is
  /// no file name, and for a --set without '='.
  static Recipe load(const Sources& sources);

  /// The key `name`, by default the file's name without its extension: one portable file name.
  std::string name() const;
  /// The table at a dotted path; empty when nobody wrote it. "" is the root. Throws ConfigError
  /// when something else stands there.
  Section section(std::string_view path) const;
  /// The tables of an array of tables, such as `[[state]]`, in file order; none when nobody wrote
  /// it. Throws ConfigError when something else stands there.
  std::vector<Section> sections(std::string_view path) const;

  /// Throws ConfigError for the first key that nobody has read: file, line, and the nearest key
  /// that was asked for in its section.
  void reject_unread() const;
  /// The dotted keys of --set that nobody has read, a whole section as one.
  std::vector<std::string> unread_sets() const;

  /// TOML that loads to the same values, the defaults read so far included, and names no other
  /// recipe file. Plugin paths are absolute. Equal values give equal text, whoever wrote them.
  std::string resolved() const;
  /// SHA-256 of resolved().
  Digest digest() const;
  /// One line a value: key, value, origin; what `tally recipe show` prints.
  std::string with_origins() const;
  /// [{"key": ..., "value": ..., "origin": ...}], as JSON text; a number that JSON lacks (inf, nan)
  /// is a string.
  std::string with_origins_json() const;

 private:
  explicit Recipe(std::shared_ptr<Document> document);
  std::shared_ptr<Document> document_;
};

}  // namespace tally::recipe
