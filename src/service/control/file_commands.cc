// SPDX-License-Identifier: Apache-2.0
#include "service/control/file_commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/size_text.h"
#include "service/control/explain.h"
#include "service/control/reservation_wait.h"
#include "service/treatment/rule_json.h"

namespace cairn::node {
namespace {

constexpr std::size_t kPathsMax = 1'000'000;

const Json& list_of(const Json& request, const char* field) {
  static const Json kEmpty = Json::array();
  const auto found = request.find(field);
  return found != request.end() && found->is_array() && found->size() <= kPathsMax ? *found
                                                                                   : kEmpty;
}

// A pin holds from now on, also for blocks that are resident already.
void pin_resident(const NodeMemory& memory, const Json& file, bool pinned) {
  if (!file.is_object() || !file.contains("device") || !file.contains("inode")) return;
  if (!file["device"].is_number_unsigned() || !file["inode"].is_number_unsigned()) return;
  const ObjectIndex index =
      find_file(memory, file["device"].get<std::uint64_t>(), file["inode"].get<std::uint64_t>());
  if (index == ObjectIndex::kNone) return;
  Object& object = memory.objects().at(index);
  ObjectHandling handling = object.handling();
  handling.pinned = pinned;
  object.set_handling(handling);
}

// Pinned blocks never leave: more of them than the tier has room for would fill it for good.
Status check_pins(const NodeMemory& memory, const RuleRegistry& rules, const FileRule& rule,
                  const Json& files) {
  if (!rule.pinned.value_or(false) || !rule.tier) return Status::ok();
  const auto handling = rules.handling_of(rule, ObjectHandling());
  if (!handling) return handling.status();
  std::uint64_t bytes = 0;
  for (const Json& file : files) {
    const auto size = file.is_object() ? file.find("bytes") : file.end();
    if (size != file.end() && size->is_number_unsigned()) bytes += size->get<std::uint64_t>();
  }
  CAIRN_CHECK(handling->home.has_value());  // what the rule names
  const TierId tier = *handling->home;
  const std::uint32_t slabs = memory.pool(tier).slab_count();
  const std::uint32_t kept_free = memory.organizer_board().low_slabs[raw(tier)].load();
  const std::uint64_t room = std::uint64_t{slabs - std::min(slabs, kept_free)} * kBlockBytes;
  if (bytes <= room) return Status::ok();
  return Status(
      StatusCode::kExhausted,
      fmt::format("{} cannot be pinned to tier {}: at most {} of its {} can", format_size(bytes),
                  *rule.tier, format_size(room), format_size(std::uint64_t{slabs} * kBlockBytes)));
}

Json to_json(const StageOutcome& outcome) {
  Json failures = Json::array();
  for (const StageFailure& failure : outcome.failures)
    failures.push_back({{"path", failure.path}, {"message", failure.message}});
  return {{"kind", "done"},
          {"files", outcome.files},
          {"bytes", outcome.bytes},
          {"bytes_no_room", outcome.bytes_no_room},
          {"failures", failures}};
}

}  // namespace

bool FileCommands::on_request(ControlPeer& peer, const std::string& command, const Json& request) {
  if (command == "set") {
    set(peer, request);
  } else if (command == "stage-in" || command == "stage-out") {
    stage(peer, request, command == "stage-in");
  } else {
    return false;
  }
  return true;
}

void FileCommands::set(ControlPeer& peer, const Json& request) {
  std::vector<FileRule> rules;
  for (const Json& object : list_of(request, "rules")) {
    auto rule = rule_from_json(object);
    if (!rule) return peer.fail(rule.status().message(), "`cairn set --help` lists what there is");
    rules.push_back(std::move(rule.value()));
  }
  const Json& files = list_of(request, "files");
  for (const FileRule& rule : rules) {
    if (const Status status = check_pins(memory_, rules_, rule, files); !status)
      return peer.fail(status.message(),
                       "pin fewer files, or to a larger tier; nothing was changed");
  }
  for (const FileRule& rule : rules) {
    if (const Status status = rules_.set(rule); !status)
      return peer.fail(status.message(), "nothing was changed by this rule");
    kept_.save();
    if (!rule.pinned) continue;
    for (const Json& file : files) pin_resident(memory_, file, *rule.pinned);
  }
  const bool reserves = std::any_of(rules.begin(), rules.end(),
                                    [](const FileRule& rule) { return rule.reserve.has_value(); });
  if (const Status status =
          reserves ? wait_for_reservations(memory_, accounts_, peer, 0) : Status::ok();
      !status) {
    return peer.fail(
        status.message(),
        "the rule holds, and its files get the room as others leave it; reserve=0 ends it");
  }
  // The blocks that are pinned no more may be the only ones that can leave.
  memory_.organizer_board().bell.ring();
  peer.send({{"kind", "done"}, {"rules", rules_.size()}});
}

void FileCommands::stage(ControlPeer& peer, const Json& request, bool in) {
  StageRequest stage;
  for (const Json& path : list_of(request, "paths")) {
    if (path.is_string()) stage.paths.push_back(path.get<std::string>());
  }
  if (const auto tier = request.find("tier"); tier != request.end() && tier->is_string()) {
    FileRule rule;
    rule.tier = tier->get<std::string>();
    const auto handling = rules_.handling_of(rule, ObjectHandling());
    if (!handling) return peer.fail(handling.status().message(), "`cairn status` lists the tiers");
    stage.tier = handling->home;
  }
  stage.progress = [&peer](const StageProgress& progress) {
    return peer.send({{"kind", "progress"},
                      {"files_done", progress.files_done},
                      {"files_total", progress.files_total},
                      {"bytes_done", progress.bytes_done},
                      {"file", progress.file}}) &&
           !peer.is_gone();
  };
  const StageOutcome outcome = in ? stager_.stage_in(stage) : stager_.stage_out(stage);
  peer.send(to_json(outcome));
}

}  // namespace cairn::node
