#pragma once

#include "support/scalar_task.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace tally::train {

/// A case of tests/cases/cases.json.
using Case = nlohmann::json;

/// All cases, in file order.
const std::vector<Case>& all_cases();
/// Those of a kind.
std::vector<Case> cases_of(const std::string& kind);
/// Throws when there is none of that id.
const Case& case_of(const std::string& id);

/// A number of the file: an integer, or a string with an integer, a fraction or "nan".
double number_of(const nlohmann::json& value);

/// Whether every term of the case is counted in positions.
bool counts_tokens(const Case& wanted);

/// A case with positions as a script: shard r is what rank r runs. A microbatch without positions
/// is one without examples.
Script script_of(const Case& wanted, at::ScalarType dtype);

/// Names the instances of a parameterised test after their cases.
std::string test_name_of(const std::string& id);

}  // namespace tally::train
