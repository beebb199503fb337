// SPDX-License-Identifier: Apache-2.0
// The words of a declaration: `name`, `name=value` and `name="a value with blanks"`.
//
// Thread safety: pure functions, values. Errors: kInvalid; the message shows the word.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace cairn {

struct DeclarationWord {
  std::string name;                  // what stands before the '=', or all of it
  std::optional<std::string> value;  // what stands behind it, without quotes
  bool is_quoted = false;            // the whole word was, so that it is no field
};

// Words are separated by blanks, tabs and line ends.
Result<std::vector<DeclarationWord>> declaration_words(std::string_view text);

}  // namespace cairn
