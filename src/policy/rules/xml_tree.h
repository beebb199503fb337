// SPDX-License-Identifier: Apache-2.0
// An XML schema as a tree, validated against schema.xsd. Opens lib/cairn/schema_xml.so the first
// time (policy/rules/schema_xml.h says why it is a shared object).
//
// Thread safety: one call at a time. Ownership: results are values.
#pragma once

#include <string>

#include "policy/rules/schema_tree.h"

namespace cairn {

// Requires: UTF-8 within the bounds of policy/rules/schema_tree.h.
SchemaDocument read_xml_tree(const std::string& text);

}  // namespace cairn
