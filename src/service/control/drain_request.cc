// SPDX-License-Identifier: Apache-2.0
#include "service/control/drain_request.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "service/control/request_fields.h"
#include "service/process/log.h"

namespace cairn::node {

DrainOutcome DrainRequest::run(ControlPeer& peer, const Json& request) const {
  if (flag_of(request, "keep", false) && durability_.has_log()) durability_.begin_keeping();
  DrainOptions options;
  const auto timeout = request.find("timeout_seconds");
  if (timeout != request.end() && timeout->is_number())
    options.timeout_seconds = timeout->get<double>();
  options.progress = [&peer](const DrainProgress& progress) {
    return peer.send({{"kind", "progress"},
                      {"remaining_bytes", progress.remaining_bytes},
                      {"remaining_files", progress.remaining_files},
                      {"rate_bytes_per_second", progress.rate_bytes_per_second},
                      {"idle_seconds", progress.idle_seconds},
                      {"file", progress.file}}) &&
           !peer.is_gone();
  };
  return drain(memory_, files_, flusher_, options);
}

Json DrainRequest::kept() const {
  constexpr std::chrono::seconds kPatience(2);
  if (!durability_.has_log()) return nullptr;
  const auto kept = durability_.keep_dirty(kPatience);
  if (!kept) return {{"is_known", false}};
  log::info("dirty files in the durable tier: {}; that cannot be there: {}, for want of room: {}",
            kept->logged, kept->refused.size(), kept->skipped);
  return {{"is_known", true},
          {"files", kept->logged},
          {"refused", kept->refused.size() + kept->skipped}};
}

namespace {

// A file of many small ones is named by the first of them.
constexpr std::size_t kLostRangesMax = 100;

Json ranges_json(const std::vector<LostRange>& ranges) {
  Json list = Json::array();
  for (std::size_t at = 0; at < std::min(ranges.size(), kLostRangesMax); ++at)
    list.push_back({{"offset", ranges[at].offset}, {"length", ranges[at].length}});
  return list;
}

}  // namespace

Json unstored_json(const std::vector<UnstoredFile>& unstored) {
  Json files = Json::array();
  for (const UnstoredFile& file : unstored) {
    CAIRN_CHECK(files.size() <= kUnstoredMax);
    if (files.size() == kUnstoredMax) break;
    Json entry = {{"path", file.path},
                  {"dirty_bytes", file.dirty_bytes},
                  {"error", file.error == 0 ? "" : std::strerror(file.error)},
                  {"errno", file.error},
                  {"since_seconds", file.since_seconds}};
    if (!file.lost.empty()) entry["unreadable"] = ranges_json(file.lost);
    files.push_back(std::move(entry));
  }
  return files;
}

void add_outcome(Json& reply, const DrainOutcome& outcome) {
  reply["stored"] = outcome.stored;
  reply["unstored"] = unstored_json(outcome.left);
  reply["unstored_total"] = outcome.left.size();
  reply["seconds"] = outcome.seconds;
  if (outcome.sync_error != 0) reply["sync_errno"] = outcome.sync_error;
}

}  // namespace cairn::node
