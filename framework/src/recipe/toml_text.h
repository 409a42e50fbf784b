#pragma once

#include "recipe/value.h"

#include <string>

namespace tally::recipe {

/// A string of TOML, unprintable characters escaped.
std::string string_text(std::string_view text);

/// The value on one line, as it stands after `key =`, unprintable characters escaped. Doubles are
/// written so that they load to the same bits (a NaN loses its sign and payload).
std::string inline_text(const Value& value);

/// The same for a sentence: of a long text only the beginning.
std::string shown(const Value& value);

/// A whole document. The text depends on the values alone: the plain values of a table before its
/// sections, what names the run and the hooks first, the rest by name.
std::string document_text(const Table& root);

/// The entries of a table in the order in which document_text writes them.
std::vector<const Table::value_type*> in_written_order(const Table& table);

}  // namespace tally::recipe
