// SPDX-License-Identifier: Apache-2.0
// A schema: the rules by which a user says which files are treated how (the paper's user-defined
// policy; Hermes, JCST 35(1), 2020, section 3.2), in XML or in YAML. docs/schemas.md has the
// fields.
//
// A schema comes from outside and is bounded and checked as a whole: the reader finds all problems
// at once, and a schema with a problem yields no rule. An XML schema must also agree with
// share/cairn/schema.xsd.
//
// Thread safety: one call at a time (libxml2). Ownership: results are values.
#pragma once

#include <string>
#include <vector>

#include "base/file_rule.h"

namespace cairn {

struct ParsedSchema {
  std::vector<FileRule> rules;        // empty when there are problems
  std::vector<std::string> problems;  // each "FILE:LINE: what is wrong; what would be right"
};

enum class SchemaOrigin {
  kUser,
  kResolved,  // written by rules_yaml() from rules that were checked: each has its own source
};

// Errors: a file that cannot be read is one problem.
ParsedSchema load_schema(const std::string& path);

// As load_schema(), for text that was read already; `path` is used in messages and, by its ending,
// to tell XML from YAML where the text does not (it begins with "<").
ParsedSchema parse_schema_text(const std::string& text, const std::string& path,
                               SchemaOrigin origin = SchemaOrigin::kUser);

}  // namespace cairn
