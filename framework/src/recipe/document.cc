#include "recipe/document.h"

#include "report/text.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <charconv>
#include <optional>

namespace tally::recipe {
namespace {

struct Step {
  std::string path;  ///< Up to and including this step.
  std::string parent;
  std::string key;
  std::optional<size_t> index;
};

std::vector<Step> steps_of(std::string_view path) {
  std::vector<Step> steps;
  size_t begin = 0;
  while (begin < path.size()) {
    const size_t end = std::min(path.find('.', begin), path.size());
    std::string_view key = path.substr(begin, end - begin);
    Step step;
    if (const size_t bracket = key.find('['); bracket != std::string_view::npos) {
      step.index.emplace();
      std::from_chars(key.data() + bracket + 1, key.data() + key.size(), *step.index);
      key = key.substr(0, bracket);
    }
    step.key = std::string(key);
    step.parent = std::string(path.substr(0, begin == 0 ? 0 : begin - 1));
    step.path = std::string(path.substr(0, end));
    steps.push_back(std::move(step));
    begin = end + 1;
  }
  return steps;
}

[[noreturn]] void reject_non_table(const Step& step, const Value& value) {
  if (is_array_of_tables(value)) {
    throw ConfigError(
        fmt::format("{}: [[{}]] is an array of tables, but one table was expected: write [{}]",
                    value.origin.text(), step.path, step.path));
  }
  throw ConfigError(fmt::format("{}: {} is {}, but a table was expected: write [{}]",
                                value.origin.text(), step.path, type_name(value), step.path));
}

}  // namespace

Value* Document::walk(std::string_view path, bool make) {
  Table* table = &root;
  Value* value = nullptr;
  for (const Step& step : steps_of(path)) {
    auto found = table->find(step.key);
    if (found == table->end()) {
      if (!make || step.index) return nullptr;
      found = table->emplace(step.key, Value{Table{}, Origin{}}).first;
    }
    value = &found->second;
    if (step.index) {
      Array* array = value->as<Array>();
      if (!array || *step.index >= array->size()) return nullptr;
      value = &(*array)[*step.index];
    }
    table = value->as<Table>();
    if (!table) reject_non_table(step, *value);
  }
  return value;
}

Table* Document::find_table(std::string_view path) {
  if (path.empty()) return &root;
  Value* value = walk(path, false);
  return value ? value->as<Table>() : nullptr;
}

Table& Document::make_table(std::string_view path) {
  if (path.empty()) return root;
  Value* value = walk(path, true);
  if (!value) throw std::logic_error(fmt::format("no element {} in the recipe", path));
  return *value->as<Table>();
}

const Value* Document::find(std::string_view section, std::string_view key) {
  const Table* table = find_table(section);
  if (!table) return nullptr;
  const auto found = table->find(key);
  return found == table->end() ? nullptr : &found->second;
}

void Document::ask(std::string_view section, std::string_view key) {
  asked[std::string(section)].emplace(key);
}

void Document::ask_section(std::string_view path) {
  for (const Step& step : steps_of(path)) ask(step.parent, step.key);
}

std::string Document::section_origin(std::string_view path) {
  const Value* value = path.empty() ? nullptr : walk(path, false);
  if (!value || !value->origin.file) return report::one_line(recipe.string());
  return value->origin.text();
}

std::string section_name(std::string_view path) {
  if (path.empty()) return "the top of the file";
  if (path.back() == ']') return fmt::format("[[{}]]", path.substr(0, path.rfind('[')));
  return fmt::format("[{}]", path);
}

}  // namespace tally::recipe
