// SPDX-License-Identifier: Apache-2.0
// A YAML schema as the tree that the XML schema of the same meaning has.
//
//   rules:
//     - name: checkpoints        is       <rules>
//       path: "*.h5"                        <rule name="checkpoints">
//       size: {min: 1M}                       <path>*.h5</path> <size min="1M"/>
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <string>

#include "policy/rules/schema_tree.h"

namespace cairn {

// Requires: UTF-8 within the bounds of policy/rules/schema_tree.h.
SchemaDocument read_yaml_tree(const std::string& text);

}  // namespace cairn
