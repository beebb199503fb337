// SPDX-License-Identifier: Apache-2.0
//
// Turns the signals that reach `cairn run` into a descriptor. The main flow handles them one at a
// time: it forwards them while the program runs, and counts them while the node stores its data.
//
// Thread safety: one per process, made before any thread. Ownership: restores nothing; it lives as
// long as the command.
#pragma once

#include <signal.h>

#include <optional>

namespace cairn::cli {

struct ReceivedSignal {
  int number = 0;
  // Sent by the terminal to the whole foreground group: the program has it already.
  bool from_terminal = false;
  // A program of the run waits for the service (base/wait_word.h).
  bool tells_of_wait = false;
};

class SignalWatch {
 public:
  // Blocks the signals that it watches. Those that were ignored (nohup) stay ignored. SIGPIPE is
  // ignored, so that a reader of our messages who goes away does not end the run before everything
  // is stored.
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Readable when next() has something.
  int descriptor() const { return descriptor_; }

  // Does not block.
  std::optional<ReceivedSignal> next();

  // Blocks until there is one.
  ReceivedSignal wait();

  // What a child restores before it executes a program.
  const sigset_t& original_mask() const { return original_mask_; }
  bool pipe_signal_was_default() const { return pipe_signal_was_default_; }

 private:
  sigset_t watched_{};
  sigset_t original_mask_{};
  bool pipe_signal_was_default_ = true;
  int descriptor_ = -1;
};

}  // namespace cairn::cli
