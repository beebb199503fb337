// SPDX-License-Identifier: Apache-2.0
// A schema, in XML or YAML: it has problems or rules, and the rules are the same when they are
// written and read again.
#include <string>

#include "base/check.h"
#include "policy/rules/rule_property.h"
#include "policy/rules/schema_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const cairn::ParsedSchema read = cairn::parse_schema_text(text, "fuzz");
  if (!read.problems.empty()) {
    CAIRN_CHECK(read.rules.empty());
    return 0;
  }
  const std::string written = cairn::rules_yaml(read.rules);
  const cairn::ParsedSchema again =
      cairn::parse_schema_text(written, "again.yaml", cairn::SchemaOrigin::kResolved);
  CAIRN_CHECK(again.problems.empty());
  CAIRN_CHECK(again.rules.size() == read.rules.size());
  CAIRN_CHECK(cairn::rules_yaml(again.rules) == written);
  return 0;
}
