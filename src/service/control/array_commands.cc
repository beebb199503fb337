// SPDX-License-Identifier: Apache-2.0
#include "service/control/array_commands.h"

#include "service/control/request_fields.h"

namespace cairn::node {

std::vector<std::string> add_hints(std::uint32_t run, const Json& request, ArrayHints* hints) {
  std::vector<std::string> complaints;
  const auto list = request.find("arrays");
  if (list == request.end() || !list->is_array()) return complaints;
  for (const Json& item : *list) {
    const std::string text = item.is_string() ? item.get<std::string>() : std::string();
    const auto hint = arrays::parse_array_hint(text);
    const Status status = hint ? hints->add(run, *hint) : hint.status();
    if (!status) complaints.push_back("array hint \"" + text + "\": " + status.message());
  }
  return complaints;
}

bool ArrayCommands::on_request(ControlPeer& peer, const std::string& command,
                               const Json& request) const {
  if (command == "arrays") {
    list(peer, request);
  } else if (command == "declare-arrays") {
    declare(peer, request);
  } else {
    return false;
  }
  return true;
}

void ArrayCommands::declare(ControlPeer& peer, const Json& request) const {
  const std::vector<std::string> complaints = add_hints(0, request, &hints_);
  kept_.save();
  if (!complaints.empty()) return peer.fail(complaints.front(), "docs/arrays.md has examples");
  peer.send({{"kind", "done"}});
}

void ArrayCommands::list(ControlPeer& peer, const Json& request) const {
  const auto device = request.find("device");
  const auto inode = request.find("inode");
  if (device == request.end() || inode == request.end() || !device->is_number_unsigned() ||
      !inode->is_number_unsigned()) {
    return peer.fail("arrays needs device and inode", "");
  }
  peer.send({{"kind", "done"},
             {"datasets", report_.of_file(device->get<std::uint64_t>(), inode->get<std::uint64_t>(),
                                          flag_of(request, "chunks", false))}});
}

}  // namespace cairn::node
