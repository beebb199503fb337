// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/picture.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>

#include "cli/node/run_directory.h"
#include "cli/terminal/failure.h"

namespace cairn::cli {
namespace {

// A word that a shell takes as it is.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char letter : word)
    text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

Failure not_started() {
  return Failure("python3 cannot be started", "install python3 and matplotlib, or leave --png out");
}

}  // namespace

void draw_picture(const std::string& program, const std::string& lines,
                  const std::string& picture) {
  const std::string command = fmt::format(
      "python3 {} {}", quoted(installed_file("share/cairn/" + program)), quoted(picture));
  std::FILE* pipe = ::popen(command.c_str(), "we");
  if (pipe == nullptr) throw not_started();
  // A program that has ended does not end this one: its status says more.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  (void)!std::fwrite(lines.data(), 1, lines.size(), pipe);
  const int status = ::pclose(pipe);
  (void)std::signal(SIGPIPE, before);
  // A shell that does not find the program ends with that status.
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) throw not_started();
  if (status != 0)
    throw Failure(fmt::format("{} was not drawn", picture), "the lines above say why");
}

}  // namespace cairn::cli
