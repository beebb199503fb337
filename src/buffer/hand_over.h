// SPDX-License-Identifier: Apache-2.0
// How a process makes sure that its dirty data outlives it: the node service gets a descriptor of the backing file.
//
// Called before the first block of an object turns dirty. The message with the descriptor is in the socket when the
// call returns, so the data can be stored even if the process is killed right after.
#pragma once

#include "base/ids.h"

namespace cairn {

class HandOver {
 public:
  // Returns false when the service cannot take it: the caller then writes through to the backing store.
  // Thread safe. Sets kObjectHandedOver on success.
  virtual bool hand_over(ObjectIndex object, int fd) = 0;

 protected:
  ~HandOver() = default;
};

}  // namespace cairn
