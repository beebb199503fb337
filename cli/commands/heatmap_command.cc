// SPDX-License-Identifier: Apache-2.0
//
// `cairn heatmap FILE [--png PICTURE]`: which parts of a file are read most.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "cli/commands/learning_commands.h"
#include "cli/commands/picture.h"
#include "cli/node/control_client.h"
#include "cli/node/json_fields.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"

namespace cairn::cli {
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
  if (!picture.empty())
    draw_picture("heatmap.py", text_field(reply, "lines"), absolute_path(picture));
  return kExitOk;
}

}  // namespace cairn::cli
