#include "support/case_file.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace tally::train {

const std::vector<Case>& all_cases() {
  static const auto* cases = [] {
    std::ifstream stream(TALLY_SOURCE_FOLDER "/tests/cases/cases.json");
    return new std::vector<Case>(
        nlohmann::json::parse(stream).at("cases").get<std::vector<Case>>());
  }();
  return *cases;
}

std::vector<Case> cases_of(const std::string& kind) {
  std::vector<Case> found;
  for (const Case& one : all_cases())
    if (one.at("kind") == kind) found.push_back(one);
  return found;
}

const Case& case_of(const std::string& id) {
  for (const Case& one : all_cases())
    if (one.at("id") == id) return one;
  throw std::invalid_argument("no case has the id " + id);
}

double number_of(const nlohmann::json& value) {
  if (value.is_number_integer()) return static_cast<double>(value.get<int64_t>());
  const auto text = value.get<std::string>();
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return std::stod(text);
  return std::stod(text.substr(0, slash)) / std::stod(text.substr(slash + 1));
}

bool counts_tokens(const Case& wanted) {
  const auto& terms = wanted.at("reducer").at("terms");
  return std::all_of(terms.begin(), terms.end(),
                     [](const nlohmann::json& term) { return term.at("unit") == "token"; });
}

Script script_of(const Case& wanted, at::ScalarType dtype) {
  Script script;
  script.dtype = dtype;
  script.terms.clear();
  for (const auto& [name, term] : wanted.at("reducer").at("terms").items()) {
    script.terms.push_back(
        {.name = name, .unit = term.at("unit"), .coefficient = number_of(term.at("coefficient"))});
  }
  std::vector<Shard> shards;
  for (const auto& rank : wanted.at("microbatches")) {
    Shard shard;
    for (const auto& microbatch : rank) {
      Example example;
      for (const auto& entry : microbatch) {
        Position position;
        position.gradient = {entry.contains("g") ? number_of(entry["g"]) : 0.0};
        position.loss = entry.contains("l") ? number_of(entry["l"]) : 0.0;
        position.weight = number_of(entry.at("w"));
        position.term = entry.value("term", "main");
        example.insert(example.end(), entry.value("n", size_t{1}), position);
      }
      shard.emplace_back();
      if (example.empty()) continue;
      shard.back() = {static_cast<ExampleId>(script.examples.size())};
      script.examples.push_back(std::move(example));
    }
    shards.push_back(std::move(shard));
  }
  script.plans = {{0, std::move(shards)}};
  return script;
}

std::string test_name_of(const std::string& id) {
  std::string name = id;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace tally::train
