// SPDX-License-Identifier: Apache-2.0
//
// The terminal while `cairn top` has it: full screen, each key at once, as it was afterwards.
//
// Thread safety: one object per process, one thread. Ownership: gives the terminal back when it
// ends, also on SIGINT and SIGTERM (by ncurses). Units: columns and rows. Errors: the constructor
// throws Failure.
#pragma once

#include <vector>

#include "cli/top/top_screen.h"

namespace cairn::cli {

class LiveTerminal {
 public:
  static constexpr int kNone = -1;  // no key in that time
  static constexpr int kResized = -2;
  static constexpr int kClosed = -3;  // there is no terminal any more

  LiveTerminal();
  ~LiveTerminal();
  LiveTerminal(const LiveTerminal&) = delete;
  LiveTerminal& operator=(const LiveTerminal&) = delete;

  ScreenShape shape() const;
  void paint(const std::vector<ScreenLine>& lines);
  // The next key, Ctrl-C included, waited for so long at most.
  int key(int milliseconds);

 private:
  void* screen_ = nullptr;
  bool is_ascii_ = false;
};

// Whether the locale of the environment has nothing but ASCII.
bool is_ascii_locale();

}  // namespace cairn::cli
