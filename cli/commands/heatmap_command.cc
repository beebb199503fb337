// SPDX-License-Identifier: Apache-2.0
//
// `cairn heatmap FILE [--png PICTURE]`: which parts of a file are read most.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/commands/learning_commands.h"
#include "cli/node/control_client.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"

namespace cairn::cli {
namespace {

std::string drawing_program() {
  const std::string executable = executable_path();
  const std::string directory = executable.substr(0, executable.rfind('/'));
  return directory.substr(0, directory.rfind('/')) + "/share/cairn/heatmap.py";
}

// A word that a shell takes as it is.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char letter : word)
    text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

void draw(const std::string& lines, const std::string& picture) {
  const std::string command =
      fmt::format("python3 {} {}", quoted(drawing_program()), quoted(picture));
  std::FILE* pipe = ::popen(command.c_str(), "we");
  if (pipe == nullptr)
    throw Failure("python3 cannot be started",
                  "install python3 and matplotlib, or leave --png out");
  (void)!std::fwrite(lines.data(), 1, lines.size(), pipe);
  if (::pclose(pipe) != 0)
    throw Failure(fmt::format("{} was not drawn", picture), "the lines above say why");
}

}  // namespace

int command_heatmap(const Arguments& arguments) {
  CLI::App app("Shows which parts of a file programs read most, and lately.", "cairn heatmap");
  std::string path;
  std::string node;
  std::string picture;
  bool json = false;
  app.add_option("path", path, "The file")->type_name("PATH")->required();
  add_text(app, "--node", node, kNodeHelp, "NAME");
  add_text(app, "--png", picture, "Draw it to this file as well (python3 with matplotlib)",
           "PICTURE");
  app.add_flag("--json", json, "One JSON object for the map, and one for each part with reads");
  app.footer("Example:\n  cairn heatmap --node job inputs/mesh.h5 --png mesh.png");
  parse(app, arguments);
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    throw Failure(fmt::format("{}: {}", path, std::strerror(errno)), "name an existing file");
  ControlClient client(select_node(node));
  const Json reply = client.request({{"command", "heatmap"},
                                     {"device", static_cast<uint64_t>(status.st_dev)},
                                     {"inode", static_cast<uint64_t>(status.st_ino)},
                                     {"path", absolute_path(path)}});
  if (!bool_field(reply, "known", false)) {
    print(json ? "" : fmt::format("{}: nobody has read it on this node\n", printable(path)));
    return kExitOk;
  }
  print(text_field(reply, json ? "lines" : "text"));
  if (!picture.empty()) draw(text_field(reply, "lines"), absolute_path(picture));
  return kExitOk;
}

}  // namespace cairn::cli
