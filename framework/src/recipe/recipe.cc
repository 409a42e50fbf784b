#include "recipe/recipe.h"

#include "recipe/document.h"
#include "recipe/file_name.h"
#include "recipe/listing.h"
#include "recipe/merge.h"
#include "recipe/toml_document.h"
#include "recipe/toml_text.h"
#include "recipe/unread.h"
#include "report/text.h"

#include <fmt/format.h>
#include <tally/error.h>

#include <utility>

namespace tally::recipe {
namespace {

namespace fs = std::filesystem;

/// "recipes/../configs/x.toml" reads better as "configs/x.toml", which is another file when
/// `recipes` is a link.
fs::path shortened(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  std::error_code ignored;
  return fs::equivalent(path, normal, ignored) || !fs::exists(path, ignored) ? normal : path;
}

/// Takes `config` out of the recipe: the file that it names, or none.
std::optional<fs::path> take_config(Table& recipe) {
  const auto found = recipe.find("config");
  if (found == recipe.end()) return std::nullopt;
  const Value value = std::move(found->second);
  recipe.erase(found);
  const std::string* text = value.as<std::string>();
  if (!text) {
    throw ConfigError(fmt::format("{}: config = {} is {}, but the path of a config was expected",
                                  value.origin.text(), shown(value), type_name(value)));
  }
  if (const auto fault = fault_of_path(*text)) {
    throw ConfigError(fmt::format("{}: config = {} {}", value.origin.text(), shown(value), *fault));
  }
  const fs::path file = shortened(value.origin.folder() / *text);
  std::error_code error;
  if (!fs::exists(file, error) && !error) {
    throw ConfigError(fmt::format(
        "{}: config = {} names {}, which does not exist: correct the path (it starts at the "
        "recipe's folder), or give another config with -c FILE",
        value.origin.text(), shown(value), report::one_line(file.string())));
  }
  return file;
}

Table read_config(const fs::path& file) {
  Table config = read_toml_file(file, Source::kConfig);
  if (const auto found = config.find("config"); found != config.end()) {
    throw ConfigError(
        fmt::format("{}: a config cannot name another config: is {} a recipe? -c takes a config",
                    found->second.origin.text(), report::one_line(file.string())));
  }
  return config;
}

void make_plugins_absolute(Value& value);

void make_plugins_absolute(Table& table) {
  for (auto& [key, value] : table) {
    std::string* text = value.as<std::string>();
    if (key == "plugin" && text && text->find('/') != std::string::npos) {
      std::error_code ignored;
      const fs::path absolute = fs::absolute(value.origin.folder() / *text, ignored);
      if (!absolute.empty()) *text = shortened(absolute).string();
    } else {
      make_plugins_absolute(value);
    }
  }
}

void make_plugins_absolute(Value& value) {
  if (Table* table = value.as<Table>()) make_plugins_absolute(*table);
  if (Array* array = value.as<Array>()) {
    for (Value& element : *array) make_plugins_absolute(element);
  }
}

Table resolve(const Document& document) {
  Table root = document.root;
  make_plugins_absolute(root);
  return root;
}

}  // namespace

Recipe::Recipe(std::shared_ptr<Document> document) : document_(std::move(document)) {}

Recipe Recipe::load(const Sources& sources) {
  auto document = std::make_shared<Document>();
  document->recipe = sources.recipe;
  Table own = read_toml_file(sources.recipe, Source::kRecipe);
  // Replaced or not, `config` is no value of the run.
  std::optional<fs::path> config;
  if (sources.config) {
    own.erase("config");
    config = sources.config;
  } else {
    config = take_config(own);
  }
  if (config) document->root = read_config(*config);
  merge(document->root, std::move(own));
  for (const std::string& set : sources.sets) apply_set(document->root, set);
  for (const Option& option : sources.options) apply_set(document->root, option.set, option.name);
  if (document->root.count("config")) {
    throw ConfigError("--set config: a config is replaced with -c FILE");
  }
  Recipe recipe(std::move(document));
  recipe.name();
  return recipe;
}

std::string Recipe::name() const {
  const Section root = section("");
  std::string name = root.text("name", document_->recipe.stem().string());
  if (const auto fault = fault_of_name(name)) root.reject("name", *fault);
  return name;
}

Section Recipe::section(std::string_view path) const {
  document_->ask_section(path);
  document_->find_table(path);
  return Section(document_, std::string(path));
}

std::vector<Section> Recipe::sections(std::string_view path) const {
  document_->ask_section(path);
  const size_t dot = path.rfind('.');
  const bool nested = dot != std::string_view::npos;
  const Value* value =
      document_->find(path.substr(0, nested ? dot : 0), path.substr(nested ? dot + 1 : 0));
  std::vector<Section> result;
  if (!value) return result;
  const Array* array = value->as<Array>();
  if (!array || !(array->empty() || is_array_of_tables(*value))) {
    throw ConfigError(fmt::format("{}: {} is {}, but an array of tables was expected: write [[{}]]",
                                  value->origin.text(), path, type_name(*value), path));
  }
  for (size_t i = 0; i < array->size(); ++i) {
    result.emplace_back(document_, element_path(path, i));
  }
  return result;
}

void Recipe::reject_unread() const {
  if (const auto sentence = describe_unread(*document_)) throw ConfigError(*sentence);
}

std::vector<std::string> Recipe::unread_sets() const { return recipe::unread_sets(*document_); }

std::string Recipe::resolved() const { return document_text(resolve(*document_)); }

Digest Recipe::digest() const { return sha256(resolved()); }

std::string Recipe::with_origins() const { return origin_lines(resolve(*document_)); }

std::string Recipe::with_origins_json() const { return origin_json(resolve(*document_)); }

}  // namespace tally::recipe
