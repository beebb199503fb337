// SPDX-License-Identifier: Apache-2.0
#include "service/control/array_commands.h"

#include <utility>

#include "policy/arrays/rule_hint.h"
#include "service/control/request_fields.h"
#include "service/process/log_file.h"

namespace cairn::node {

namespace {

constexpr const char* kNoList = "arrays is a list of texts";

// The hints of a request, each with its text in front of what is wrong with it.
std::vector<Result<arrays::ArrayHint>> hints_of(const Json& list) {
  std::vector<Result<arrays::ArrayHint>> hints;
  for (const Json& item : list) {
    if (!item.is_string()) {
      hints.emplace_back(Status(StatusCode::kInvalid, kNoList));
      continue;
    }
    const auto text = item.get<std::string>();
    auto hint = arrays::parse_array_hint(text);
    const Status status = hint ? hint->check() : hint.status();
    if (status) {
      hints.push_back(std::move(hint));
    } else {
      hints.emplace_back(
          Status(status.code(), "array hint \"" + text + "\" is left out: " + status.message()));
    }
  }
  return hints;
}

}  // namespace

void add_hints(std::uint32_t run, const Json& request, ArrayHints* hints) {
  const auto leave_out = [&](const std::string& complaint) {
    log_warning(complaint);
    hints->note_refused(run, complaint);
  };
  const auto list = request.find("arrays");
  if (list == request.end()) return;
  if (!list->is_array()) return leave_out(kNoList);
  for (const auto& hint : hints_of(*list)) {
    if (!hint) {
      leave_out(hint.status().message());
    } else if (const Status status = hints->add(run, *hint); !status) {
      leave_out("array hint \"" + hint->text + "\" is left out: " + status.message());
    }
  }
}

void add_hints_of_rules(std::uint32_t run, const std::vector<FileRule>& rules, ArrayHints* hints) {
  for (const FileRule& rule : rules) {
    if (!rule.array) continue;
    const auto hint = arrays::hint_of(rule);
    const Status status = hint ? hints->add_of_rule(run, *hint) : hint.status();
    if (status) continue;
    const std::string complaint = rule.source + ": array is left out: " + status.message();
    log_warning(complaint);
    hints->note_refused(run, complaint);
  }
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
  constexpr const char* kRemedy = "docs/arrays.md has examples";
  const auto list = request.find("arrays");
  if (list == request.end() || !list->is_array()) return peer.fail(kNoList, kRemedy);
  std::vector<arrays::ArrayHint> hints;
  for (auto& hint : hints_of(*list)) {
    if (!hint) return peer.fail(hint.status().message(), kRemedy);
    hints.push_back(*hint);
  }
  if (const Status status = hints_.add_all(0, hints); !status)
    return peer.fail(status.message(), kRemedy);
  kept_.save();
  peer.send({{"kind", "done"}});
}

void ArrayCommands::list(ControlPeer& peer, const Json& request) const {
  const auto device = request.find("device");
  const auto inode = request.find("inode");
  if (device == request.end() || inode == request.end() || !device->is_number_unsigned() ||
      !inode->is_number_unsigned()) {
    return peer.fail("arrays needs device and inode", "");
  }
  const ArrayReport::Question question{device->get<std::uint64_t>(), inode->get<std::uint64_t>(),
                                       text_of(request, "dataset"),
                                       flag_of(request, "chunks", false)};
  peer.send({{"kind", "done"}, {"datasets", report_.of_file(question)}});
}

}  // namespace cairn::node
