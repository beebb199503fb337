// SPDX-License-Identifier: Apache-2.0
// Points between two steps of a protocol that others may see. Production passes NoPause, which
// costs nothing; a test lets others go on there (block_interleavings_test.cc).
//
// Thread safety: values.
#pragma once

namespace cairn {

struct NoPause {
  void at_step() const {}
  // The next step waits for this lock.
  template <typename Lock>
  void before_lock(const Lock&) const {}
};

}  // namespace cairn
