// SPDX-License-Identifier: Apache-2.0
// A stream: the accesses of one process through one open description of a file. The table of
// streams (service/learning/stream_table.h) makes and ends it; each learner keeps its own state of
// it in a slot.
//
// Thread safety: none; the thread of the event reader uses it. Ownership: the table owns streams,
// and a stream its states.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "memory/arena/owner.h"

namespace cairn::node {

class AccessStream {
 public:
  static constexpr std::size_t kSlotsMax = 4;

  AccessStream(Owner owner, DescriptionIndex description, ObjectIndex object)
      : owner_(owner), description_(description), object_(object) {}

  Owner owner() const { return owner_; }
  DescriptionIndex description() const { return description_; }
  ObjectIndex object() const { return object_; }

 private:
  template <typename State>
  friend class StreamSlot;

  Owner owner_;
  DescriptionIndex description_;
  ObjectIndex object_;
  std::array<std::shared_ptr<void>, kSlotsMax> states_;
};

// The streams and the open descriptions that end together.
struct StreamEnds {
  std::vector<AccessStream*> streams;
  std::vector<ObjectIndex> closed;  // the file of each description

  bool is_empty() const { return streams.empty() && closed.empty(); }
};

}  // namespace cairn::node
