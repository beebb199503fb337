// SPDX-License-Identifier: Apache-2.0
// The pool of OpenFile records, which never gives memory back and reuses the oldest record first: a
// thread that lost a race against close() finds a record, and for a second the old one (or until
// the program has closed thousands of others).
//
// Thread safety: any thread.
#pragma once

namespace cairn {

struct OpenFile;

class OpenFilePool {
 public:
  // A reset record, or null when the process has no memory left.
  static OpenFile* take();
  static void give_back(OpenFile* file);
  // All that were ever taken, those that rest included. Requires: no other thread runs.
  static void for_each(void (*visit)(OpenFile& file));
};

}  // namespace cairn
