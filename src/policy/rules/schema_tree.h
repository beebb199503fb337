// SPDX-License-Identifier: Apache-2.0
// A schema as a tree of named entries that know their line: the common form of an XML and a YAML
// text of the same meaning. policy/rules/rule_reader.h makes rules of it.
//
// XML elements and attributes and YAML keys all become entries; an item of a YAML list becomes an
// entry named after what it is ("rule"). Nothing is interpreted here.
//
// Thread safety: plain values. Ownership: own their strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cairn {

// Bounds of a schema text, for both formats: a schema is written by hand, and what is larger is
// some other file or an attack on the reader.
inline constexpr std::size_t kSchemaBytesMax = std::size_t{1} << 20;
// libxml2 keeps the line of a node in 16 bits.
inline constexpr unsigned kSchemaLinesMax = 65535;
inline constexpr unsigned kSchemaDepthMax = 16;
inline constexpr unsigned kSchemaEntriesMax = 50'000;
inline constexpr unsigned kSchemaRulesMax = 1024;
// A text of another kind would bury its first mistake under thousands.
inline constexpr unsigned kSchemaProblemsMax = 50;

enum class EntryKind : std::uint8_t { kElement, kAttribute, kKey };

struct SchemaEntry {
  EntryKind kind = EntryKind::kElement;
  std::string name;
  std::string text;   // without white space around it
  unsigned line = 1;  // from 1
  std::vector<SchemaEntry> entries;
  bool is_list = false;  // of YAML, where no list belongs; what is in it is not kept
};

struct SchemaProblem {
  unsigned line = 1;
  std::string text;  // what is wrong; what would be right
};

struct SchemaDocument {
  SchemaEntry root;  // named "rules"; means something only when the text is well-formed
  bool well_formed = false;
  std::vector<SchemaProblem> problems;
};

}  // namespace cairn
