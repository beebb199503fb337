// SPDX-License-Identifier: Apache-2.0
//
// The terminal while `cairn top` has it: full screen, each key at once, as it was afterwards.
//
// The signals that end a command wait while the object is there, so that none ends it before the
// terminal is given back: key() says that one has come.
//
// Thread safety: one object per process, one thread. Ownership: gives the terminal and the signals
// back when it ends. Units: columns and rows. Errors: the constructor throws Failure.
#pragma once

#include <signal.h>

#include <vector>

#include "cli/top/top_screen.h"

namespace cairn::cli {

// Makes the signals that end a command readable, for as long as it is there. Those that were
// ignored (nohup) stay ignored.
class EndSignals {
 public:
  EndSignals();
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  int descriptor() const { return descriptor_; }
  // The one that has come; 0: none.
  int take() const;

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

class LiveTerminal {
 public:
  static constexpr int kNone = -1;  // no key in that time
  static constexpr int kResized = -2;
  static constexpr int kClosed = -3;  // there is no terminal any more
  static constexpr int kEnded = -4;   // by a signal: end_signal()

  LiveTerminal();
  ~LiveTerminal();
  LiveTerminal(const LiveTerminal&) = delete;
  LiveTerminal& operator=(const LiveTerminal&) = delete;

  ScreenShape shape() const;
  void paint(const std::vector<ScreenLine>& lines);
  // The next key, Ctrl-C included, waited for so long at most.
  int key(int milliseconds);
  // Readable when key() has something to say.
  int descriptor() const { return inbox_; }
  int end_signal() const { return end_signal_; }

 private:
  int take_key();

  EndSignals signals_;
  int inbox_ = -1;
  int end_signal_ = 0;
  void* screen_ = nullptr;
  bool is_ascii_ = false;
};

// Whether the locale of the environment has nothing but ASCII.
bool is_ascii_locale();

}  // namespace cairn::cli
