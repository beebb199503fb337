// SPDX-License-Identifier: Apache-2.0
#include "service/control/control_commands.h"

#include "service/control/request_fields.h"
#include "service/write_back/detachment.h"

namespace cairn::node {
namespace {

Json done() { return {{"kind", "done"}}; }

}  // namespace

void ControlCommands::on_request(ControlPeer& peer, std::uint64_t session, const Json& request) {
  const std::string command = text_of(request, "command");
  if (command == "status") return status(peer);
  if (command == "drain") return drain(peer, request);
  if (command == "explain") return explain(peer, request);
  if (command == "config") return config(peer);
  if (command == "shutdown") return shutdown(peer, request);
  if (parts_.runs.on_request(peer, session, command, request)) return;
  if (parts_.files.on_request(peer, command, request)) return;
  if (parts_.learning.on_request(peer, session, command, request)) return;
  if (parts_.arrays != nullptr && parts_.arrays->on_request(peer, command, request)) return;
  peer.fail("unknown command \"" + command + "\"",
            "the node may run another version of Cairn than this command");
}

void ControlCommands::status(ControlPeer& peer) {
  Json reply = done();
  reply["status"] = parts_.status.status();
  peer.send(reply);
}

void ControlCommands::drain(ControlPeer& peer, const Json& request) const {
  const DrainOutcome outcome = parts_.drain.run(peer, request);
  Json reply = done();
  add_outcome(reply, outcome);
  peer.send(reply);
}

void ControlCommands::explain(ControlPeer& peer, const Json& request) const {
  const auto device = request.find("device");
  const auto inode = request.find("inode");
  if (device == request.end() || inode == request.end() || !device->is_number_integer() ||
      !inode->is_number_integer()) {
    return peer.fail("explain needs device and inode", "");
  }
  ExplainRequest file;
  file.device = device->get<std::uint64_t>();
  file.inode = inode->get<std::uint64_t>();
  file.path = text_of(request, "path");
  if (const auto size = request.find("size"); size != request.end() && size->is_number_unsigned())
    file.size = size->get<std::uint64_t>();
  peer.send(parts_.explanation.of(file));
}

void ControlCommands::config(ControlPeer& peer) const {
  Json options = Json::array();
  for (const ResolvedOption& option : parts_.config.resolved) {
    options.push_back({{"name", option.name}, {"value", option.value}, {"source", option.source}});
  }
  Json reply = done();
  reply["options"] = options;
  peer.send(reply);
}

void ControlCommands::shutdown(ControlPeer& peer, const Json& request) const {
  Json reply = done();
  const bool discard = flag_of(request, "discard", false);
  if (flag_of(request, "drain", true) && !discard) {
    const DrainOutcome outcome = parts_.drain.run(peer, request);
    add_outcome(reply, outcome);
    if (!outcome.stored) {
      // The only copy is here: the node stays until somebody says that it may be lost.
      reply["stopped"] = false;
      peer.send(reply);
      return;
    }
  } else {
    const DirtyView left = parts_.drain.dirty(100);
    if (!left.files.empty() && !discard) {
      return peer.fail(std::to_string(left.files.size()) + " files are not stored yet",
                       "drain first, or discard them");
    }
    reply["stored"] = left.files.empty();
    reply["unstored"] = unstored_json(left.files);
  }
  reply["stopped"] = true;
  // No new dirty data from here on; what a client still has in hand goes to the backing store.
  detach_clients(parts_.memory);
  peer.send(reply);
  parts_.stop.request_stop();
}

void ControlCommands::on_close(std::uint64_t session) {
  parts_.learning.on_close(session);
  parts_.runs.on_close(session);
}

}  // namespace cairn::node
