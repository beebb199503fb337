// SPDX-License-Identifier: Apache-2.0
//
// Starts the program of a run: its environment, the filter that refuses io_uring, and the exec.
//
// Thread safety: one thread. Ownership: the caller waits for the process.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/launch/scratch_mounts.h"

namespace cairn::cli {

struct ProgramEnvironment {
  std::string preload_library;
  std::string client_socket;
  std::vector<std::string> buffer_directories;
  std::vector<std::string> exclude;
  std::string run_id;
  std::string handling;  // CAIRN_HANDLING: the run's own settings; empty: the node's
  std::string arrays;    // CAIRN_ARRAYS; empty: auto
  bool allow_io_uring =
      false;  // tells the library, which refuses syscall(SYS_io_uring_setup) otherwise
};

// This process's environment with the variables of a run replaced.
std::vector<std::string> program_environment(const ProgramEnvironment& run);

struct ProgramStart {
  std::string path;                    // what to execute
  std::vector<std::string> arguments;  // argv, with the name as the user gave it first
  std::vector<std::string> environment;
  sigset_t signal_mask{};
  bool restore_pipe_signal = true;
  bool allow_io_uring = false;
  std::vector<ScratchMount> scratch;
};

struct StartedProgram {
  pid_t process = -1;
  int error = 0;  // errno of the exec that failed; process is -1 then
  const char* failed_step = "";
};

// What execve() takes in the place of texts: pointers into them, and a null pointer at the end.
std::vector<char*> exec_words(const std::vector<std::string>& texts);

StartedProgram start_program(const ProgramStart& start);

// Makes io_uring_setup, io_uring_enter and io_uring_register fail with ENOSYS in the calling
// process and all its children, for good. Sets no_new_privs, without which the kernel takes no
// filter from a user.
// Returns: 0 or an errno.
int refuse_io_uring();

}  // namespace cairn::cli
