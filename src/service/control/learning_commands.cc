// SPDX-License-Identifier: Apache-2.0
#include "service/control/learning_commands.h"

#include "service/control/explain.h"

namespace cairn::node {
namespace {

std::uint64_t unsigned_of(const Json& request, const char* field) {
  const auto found = request.find(field);
  return found != request.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// Also of a field that is no text: empty.
std::string plain_text(const Json& request, const char* field) {
  const auto found = request.find(field);
  return found != request.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string path_in(const Json& request) { return plain_text(request, "path"); }

}  // namespace

bool LearningCommands::on_request(ControlPeer& peer, std::uint64_t session,
                                  const std::string& command, const Json& request) {
  if (command == "declare") {
    declare(peer, request);
  } else if (command == "heatmap") {
    heatmap(peer, request);
  } else if (command == "trace-start") {
    trace_start(peer, session, request);
  } else if (command == "trace-stop") {
    trace_stop(peer);
  } else {
    return false;
  }
  return true;
}

void LearningCommands::declare(ControlPeer& peer, const Json& request) const {
  const std::string path = path_in(request);
  if (path.empty() || path.front() != '/')
    return peer.fail("declare needs an absolute path", "name a file of declarations");
  // Opens and reads before the declaration do not count against it.
  with_.events.settle();
  const auto count = with_.declarations.declare(path, plain_text(request, "fingerprint"));
  if (!count)
    return peer.fail(count.status().message(), "docs/orders.md says what can be declared");
  with_.kept.save();
  peer.send({{"kind", "done"}, {"orders", *count}});
}

void LearningCommands::heatmap(ControlPeer& peer, const Json& request) const {
  with_.events.settle();
  const ObjectIndex object =
      find_file(with_.memory, unsigned_of(request, "device"), unsigned_of(request, "inode"));
  const auto picture =
      object == ObjectIndex::kNone ? std::nullopt : with_.heat.picture_of(object, path_in(request));
  Json reply = {{"kind", "done"}, {"known", picture.has_value()}};
  if (picture) {
    reply["text"] = heat_text(*picture);
    reply["lines"] = heat_json_lines(*picture);
  }
  peer.send(reply);
}

void LearningCommands::trace_start(ControlPeer& peer, std::uint64_t session,
                                   const Json& request) const {
  const std::string path = path_in(request);
  if (path.empty() || path.front() != '/')
    return peer.fail("trace-start needs an absolute path", "name the file to record to");
  if (const Status status = with_.recorder.start(path, session); !status)
    return peer.fail(status.message(), "stop the other recording, or name another file");
  peer.send({{"kind", "done"}});
}

void LearningCommands::on_close(std::uint64_t session) { with_.recorder.on_close(session); }

void LearningCommands::trace_stop(ControlPeer& peer) const {
  with_.events.settle();
  const auto recorded = with_.recorder.stop();
  if (!recorded) return peer.fail(recorded.status().message(), "see whether the disk is full");
  const TraceRecorder::Recorded& what = recorded.value();
  peer.send({{"kind", "done"},
             {"path", what.path},
             {"events", what.events},
             {"bytes", what.bytes},
             {"lost", what.lost}});
}

}  // namespace cairn::node
