// SPDX-License-Identifier: Apache-2.0
// A file that is cut by its name (truncate()), open for writing for as long as that takes.
//
// Closing any descriptor of a file would cost the process its fcntl() locks on it. So where the
// file is locked, one that the program has open for writing serves, and is held meanwhile. Where
// there is none, the locks being for reading alone, a descriptor is opened once and stays until the
// locks go.
//
// Thread safety: any thread, each with one of its own.
#pragma once

#include "base/signal_gate.h"
#include "frontends/descriptors/open_file.h"

namespace cairn {

class NamedWriter {
 public:
  // `object`: kNone if the file is not buffered.
  NamedWriter(ObjectIndex object, const char* path);
  ~NamedWriter();
  NamedWriter(const NamedWriter&) = delete;
  NamedWriter& operator=(const NamedWriter&) = delete;

  // 0, or -errno: the file may not be written.
  int error() const { return error_; }
  PosixBacking& backing() { return record_ != nullptr ? *record_->backing : own_; }

 private:
  SignalGateGuard gate_;  // a handler that jumped out would leave the file held
  ObjectIndex object_;
  OpenFile* record_;  // null: the descriptor is `fd_`
  int fd_;
  int error_;
  PosixBacking own_;
};

}  // namespace cairn
