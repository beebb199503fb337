// SPDX-License-Identifier: Apache-2.0
#include "service/node/log_end.h"

#include "service/durable_log/directory_storage.h"
#include "service/durable_log/left_programs.h"
#include "service/process/log.h"
#include "service/replay/stored_files.h"

namespace cairn::node {
namespace {

bool void_failed_log(const NodeConfig& config, const NodeMemory& memory, NodeLog* log,
                     bool is_all_durable) {
  const Status health = log->log().health();
  const std::string& directory = config.tiers[durable_tier_of(config)].directory;
  log->close();
  const auto is_ours = [&](const durable::FileIdentity& file) {
    const ObjectIndex index = memory.objects().find(file.key);
    return index != ObjectIndex::kNone && memory.objects().at(index).is_in_log();
  };
  Status done = {StatusCode::kUnavailable, "not all of them are known to be durable"};
  if (is_all_durable) done = durable::forget_stored(directory, is_ours);
  if (done) {
    log::warn("the durable log in {} failed ({}); what it had of files that are stored is void",
              directory, health.message());
    return true;
  }
  log::error(
      "the durable log in {} failed ({}) and has older bytes of files that are stored ({}): use "
      "neither that tier nor `cairn recover` on it before its device is mended; remove the folder "
      "cairn-durable there to give up what it has",
      directory, health.message(), done.message());
  return false;
}

}  // namespace

bool end_log(const NodeConfig& config, const NodeMemory& memory, NodeLog* log, const LogEnd& end) {
  if (!log->is_open()) return true;
  const bool has_failed = log->has_failed();
  if (has_failed && !void_failed_log(config, memory, log, end.is_all_durable)) return false;
  const std::string& directory = config.tiers[durable_tier_of(config)].directory;
  if (has_failed || end.is_empty) durable::forget_programs(durable::log_folder_of(directory));
  return true;
}

}  // namespace cairn::node
