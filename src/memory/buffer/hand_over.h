// SPDX-License-Identifier: Apache-2.0
// How a process makes sure that its dirty data outlives it: the node service gets a descriptor of
// the backing file.
//
// Called before the first block of an object turns dirty. The message with the descriptor is in the
// socket when the call returns, so the data can be stored even if the process is killed right
// after.
#pragma once

#include <errno.h>

#include "base/ids.h"
#include "memory/backing/backing.h"

namespace cairn {

class HandOver {
 public:
  // Returns false when the service cannot take it, or there is nothing to take: the caller then
  // writes through to the backing. Thread safe. Sets kObjectHandedOver on success.
  virtual bool hand_over(ObjectIndex object, const Backing& backing) = 0;
  // Has the service store an object that this process may only read. 0 or -errno.
  virtual int request_flush(ObjectIndex object, bool durable) = 0;
  // Has the service make an object durable, in its log where it has one. 0 or -errno.
  virtual int request_durable(ObjectIndex object) { return request_flush(object, true); }
  // The durable log may have records of the object, which is about to be cut to `size`: the caller
  // does that once this returns 0. Requires: a change of shape under way.
  virtual int note_cut(ObjectIndex, std::uint64_t) { return 0; }
  // The same, and the object has got another name.
  virtual void note_renamed(ObjectIndex) {}
  // The object was made while files of unserved processes had none: it is in through mode for as
  // long as they have it open when this returns 0. Otherwise it cannot be buffered.
  virtual int meet_unserved(ObjectIndex) { return -EBUSY; }
  // The object was unlinked and its data dropped: the service need not keep its descriptor.
  virtual void discarded(ObjectIndex object) = 0;

 protected:
  ~HandOver() = default;
};

// For those who work without a connection to the service: the service itself and its sweep.
class NoService final : public HandOver {
 public:
  bool hand_over(ObjectIndex, const Backing&) override { return false; }
  int request_flush(ObjectIndex, bool) override { return -EBADF; }
  void discarded(ObjectIndex) override {}
};

}  // namespace cairn
