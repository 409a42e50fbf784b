#include "recipe/unread.h"

#include "recipe/nearest.h"
#include "recipe/toml_text.h"
#include "report/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

namespace tally::recipe {
namespace {

using Keys = std::set<std::string, std::less<>>;

struct Unread {
  std::string section;
  std::string key;
  const Value* value;

  auto rank() const { return std::make_tuple(value->origin.source, value->origin.line); }
};

class Search {
 public:
  explicit Search(const Document& document) : document_(document) { visit(document.root, ""); }

  const std::vector<Unread>& found() const { return found_; }

  std::optional<std::string> sentence() const {
    if (found_.empty()) return std::nullopt;
    const auto& [section, key, value] = first();
    if (is_section(*value)) {
      return fmt::format("{}: {} is no known section: {}", value->origin.text(),
                         written_name(report::shown(join_path(section, key)), *value), remedy());
    }
    return fmt::format("{}: {} = {} is no known key {} {}: {}", value->origin.text(),
                       report::shown(join_path(section, key)), shown(*value),
                       section.empty() ? "at" : "of", section_name(section), remedy());
  }

 private:
  static bool is_section(const Value& value) {
    return value.as<Table>() || is_array_of_tables(value);
  }

  static std::string written_name(const std::string& path, const Value& value) {
    return value.as<Table>() ? fmt::format("[{}]", path) : fmt::format("[[{}]]", path);
  }

  const Keys& asked(std::string_view section) const {
    static const Keys kNone;
    const auto found = document_.asked.find(section);
    return found == document_.asked.end() ? kNone : found->second;
  }

  void visit(const Table& table, const std::string& section) {
    const Keys& known = asked(section);
    for (const auto& [key, value] : table) {
      if (known.find(key) == known.end()) {
        found_.push_back({section, key, &value});
      } else if (const Table* child = value.as<Table>()) {
        visit(*child, join_path(section, key));
      } else if (is_array_of_tables(value)) {
        const Array& array = *value.as<Array>();
        for (size_t i = 0; i < array.size(); ++i) {
          visit(*array[i].as<Table>(), element_path(join_path(section, key), i));
        }
      }
    }
  }

  const Unread& first() const {
    return *std::min_element(
        found_.begin(), found_.end(),
        [](const Unread& one, const Unread& other) { return one.rank() < other.rank(); });
  }

  std::string remedy() const {
    const auto& [section, key, value] = first();
    const Keys& known = asked(section);
    if (const auto near = nearest(key, known)) {
      const std::string path = join_path(section, *near);
      const bool names_section = is_section(*value) && document_.asked.count(path);
      return fmt::format("did you mean {}?",
                         names_section ? section_name(path) : fmt::format("\"{}\"", *near));
    }
    for (const auto& [other, keys] : document_.asked) {
      if (other != section && keys.count(key)) {
        return fmt::format("the key of that name belongs {} {}", other.empty() ? "to" : "into",
                           section_name(other));
      }
    }
    if (known.empty()) return "nothing here is read";
    return fmt::format("known here: {}", fmt::join(known, ", "));
  }

  const Document& document_;
  std::vector<Unread> found_;
};

}  // namespace

std::optional<std::string> describe_unread(const Document& document) {
  return Search(document).sentence();
}

std::vector<std::string> unread_sets(const Document& document) {
  const Search search(document);
  std::vector<std::string> keys;
  for (const auto& [section, key, value] : search.found()) {
    if (value->origin.source == Source::kSet) keys.push_back(join_path(section, key));
  }
  return keys;
}

}  // namespace tally::recipe
