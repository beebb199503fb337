// SPDX-License-Identifier: Apache-2.0
// The second private descriptor of a file, for processes that have it past the buffers.
//
// The first one can have neither O_APPEND nor O_DIRECT, because the library stores any bytes at any
// place through it. So such a process gets the twin in place of the program's descriptor: it has
// the program's flags, its offset counts from then on (kOffsetInKernel), and so do its locks. Only
// one description for all sharers does that, so a file opened with one of these flags has its twin
// from the open on, and any other from the moment in which it is shared.
//
// Without a twin (the file may not be opened again, no number is left, others share it already, or
// the process has fcntl() locks or a lease on it, or has mapped it) such a process gets the private
// descriptor, or, to append, a description of its own.
//
// Thread safety: any thread; make_twin() and the step after which its absence is final (the file is
// shared) need TwinGuard around both. Ownership: the record closes the twin with its private
// descriptor.
#pragma once

#include "frontends/client/process_page.h"
#include "frontends/descriptors/open_file.h"

namespace cairn {

// Excludes the making of twins in this process.
class TwinGuard {
 private:
  LocalGuard guard_{process_lock(ProcessLock::kTwins)};
};

// Nothing happens where others share the file already, whose offset and locks are those of the
// private descriptor, and in a vfork child, which has its parent's records and not its descriptors.
// Requires: TwinGuard, unless no other thread has the record yet.
void make_twin(OpenFile& file, bool close_on_exec);

// Before a lease, to which each description that may write is a stranger. The twin stays when it
// is in use.
void give_up_twin(OpenFile& file);

// fcntl(F_SETFL) for the twin, if there is one. 0 or -errno.
int set_flags_of_twin(const OpenFile& file, long flags);

}  // namespace cairn
