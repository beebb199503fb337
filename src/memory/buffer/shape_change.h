// SPDX-License-Identifier: Apache-2.0
// A time in which no block of an object comes, and after which every write that overlapped it is
// repeated: for who changes which bytes the store has (invariants 3 and 4 of Object).
//
// In that time readers and writers of what is not resident use the store itself, so that nothing
// is filled before the change and kept after it. Blocks that are resident stay until they are
// dropped.
//
// Thread safety: requires the object's lock, and that nobody's change is left open
// (end_dead_change() in object_lifecycle.h). Ownership: borrows the object.
#pragma once

#include "base/check.h"
#include "memory/catalog/object.h"

namespace cairn {

class ShapeChange {
 public:
  explicit ShapeChange(Object& object) : object_(object) {
    CAIRN_DCHECK(!object.is_changing_shape());
    object_.shape_sequence.fetch_add(1, std::memory_order_seq_cst);
  }
  ~ShapeChange() { object_.shape_sequence.fetch_add(1, std::memory_order_seq_cst); }
  ShapeChange(const ShapeChange&) = delete;
  ShapeChange& operator=(const ShapeChange&) = delete;

 private:
  Object& object_;
};

}  // namespace cairn
