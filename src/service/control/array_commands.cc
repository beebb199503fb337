// SPDX-License-Identifier: Apache-2.0
#include "service/control/array_commands.h"

#include "service/control/request_fields.h"

namespace cairn::node {

bool ArrayCommands::on_request(ControlPeer& peer, const std::string& command,
                               const Json& request) const {
  if (command != "arrays") return false;
  list(peer, request);
  return true;
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
