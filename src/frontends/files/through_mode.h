// SPDX-License-Identifier: Apache-2.0
// Gives a buffered file to the kernel for a while: for a call that works on the backing file
// itself, in ways that we need not know.
//
// Thread safety: one object, one thread; any number of them on one file. Ownership: the through
// mode is held in the process's name, so it ends with the process if that is killed in between.
#pragma once

#include "frontends/descriptors/open_file.h"

namespace cairn {

class ThroughMode {
 public:
  ThroughMode() = default;
  // Takes over what the kernel has made of the file's size and times.
  ~ThroughMode();
  ThroughMode(const ThroughMode&) = delete;
  ThroughMode& operator=(const ThroughMode&) = delete;

  // Everything is stored, and from here on everybody reads and writes the backing file. 0 or
  // -errno. Requires: not entered yet.
  int enter(OpenFile& file);
  // The kernel may go on using the file after the call that follows, in any process, for as long as
  // it likes: the file stays in through mode unless failed() follows.
  void keep_for_good();
  void failed();

 private:
  OpenFile* file_ = nullptr;
  HoldIndex hold_ = HoldIndex::kNone;
  bool is_kept_ = false;
};

}  // namespace cairn
