// SPDX-License-Identifier: Apache-2.0
// Around a call that makes the kernel look at every later write of a file: a mode with set-id bits,
// a file capability, the attributes append-only and immutable.
//
// Earlier writes go to the store before the call: a write-back after it would make the kernel take
// the bits away, or refuse the data. From then on the object is guarded (memory/catalog/object.h).
//
// Thread safety: any thread; one change for one call. Ownership: borrows the session.
#pragma once

#include <sys/types.h>

#include "frontends/descriptors/open_file.h"
#include "memory/buffer/object_io.h"

namespace cairn {

// A mode with S_ISUID or S_ISGID, which a write takes away.
bool is_guarding_mode(mode_t mode);
// The extended attribute that a write takes away.
bool is_guarding_attribute(const char* name);
// Whether the kernel has a say in the writes of a file that was just opened for writing.
bool is_guarded(int fd, const StoreStatus& status);

class GuardChange {
 public:
  // Nothing happens when `is_wanted` is false, or the file is none of the node's.
  GuardChange(OpenFile* file, bool is_wanted);
  // `flags` as for statx().
  GuardChange(int directory, const char* path, int flags, bool is_wanted);
  ~GuardChange();
  GuardChange(const GuardChange&) = delete;
  GuardChange& operator=(const GuardChange&) = delete;

 private:
  void begin(Backing& backing);

  Actor* actor_ = nullptr;
  ObjectIndex object_ = ObjectIndex::kNone;
  bool is_through_ = false;
};

}  // namespace cairn
