// SPDX-License-Identifier: Apache-2.0
//
// A command's way to end early: a message that names the thing, a remedy, and the exit status.
//
// Thread safety: a plain value. Ownership: owns its strings.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace cairn::cli {

// The exit statuses of Cairn's own making; see docs/reference.md.
inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 2;     // usage, configuration, no such node, no permission
inline constexpr int kExitInternal = 70;   // EX_SOFTWARE: a defect of Cairn
inline constexpr int kExitNotStored = 74;  // EX_IOERR: something is not on the backing store
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& message, std::string remedy = "",
                   int exit_status = kExitRefused)
      : std::runtime_error(message), remedy_(std::move(remedy)), exit_status_(exit_status) {}

  const std::string& remedy() const { return remedy_; }
  int exit_status() const { return exit_status_; }

 private:
  std::string remedy_;
  int exit_status_;
};

// Throws to end a command whose help was printed.
struct HelpShown {};

// Runs a command and says what it throws. Returns: the exit status.
int exit_status_of(const std::function<int()>& command);

}  // namespace cairn::cli
