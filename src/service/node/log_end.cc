// SPDX-License-Identifier: Apache-2.0
#include "service/node/log_end.h"

#include <cstdint>
#include <set>
#include <string>

#include "service/durable_log/directory_storage.h"
#include "service/durable_log/left_programs.h"
#include "service/process/log.h"
#include "service/replay/stored_files.h"

namespace cairn::node {
namespace {

// By their records: the table finds a removed file no more, and the failed log has not heard of the
// removal.
std::set<ObjectKey> files_in_log(const ObjectTable& objects) {
  std::set<ObjectKey> files;
  for (std::uint32_t number = 1; number < objects.used(); ++number) {
    const Object& object = objects.at(static_cast<ObjectIndex>(number));
    if (object.is_in_log()) files.insert(object.key());
  }
  return files;
}

// Returns: of how many files and directories it still has something that is not older.
Result<std::uint64_t> void_failed_log(const NodeConfig& config, const NodeMemory& memory,
                                      NodeLog* log, bool is_all_durable) {
  const Status health = log->log().health();
  const std::string& directory = config.tiers[durable_tier_of(config)].directory;
  log->close();
  const std::set<ObjectKey> ours = files_in_log(memory.objects());
  Result<std::uint64_t> left =
      Status(StatusCode::kUnavailable, "not all of them are known to be durable");
  if (is_all_durable) {
    left = durable::forget_stored(
        directory, [&ours](const durable::FileIdentity& file) { return ours.contains(file.key); });
  }
  if (left) {
    log::warn("the durable log in {} failed ({}); what it had of files that are stored is void",
              directory, health.message());
    return left;
  }
  log::error(
      "the durable log in {} failed ({}) and has older bytes of files that are stored ({}): use "
      "neither that tier nor `cairn recover` on it before its device is mended; remove the folder "
      "cairn-durable there to give up what it has",
      directory, health.message(), left.status().message());
  return left;
}

}  // namespace

bool end_log(const NodeConfig& config, const NodeMemory& memory, NodeLog* log, const LogEnd& end) {
  if (!log->is_open()) return true;
  bool is_empty = end.is_empty;
  if (log->has_failed()) {
    const auto left = void_failed_log(config, memory, log, end.is_all_durable);
    if (!left) return false;
    is_empty = *left == 0;
  }
  const std::string& directory = config.tiers[durable_tier_of(config)].directory;
  if (is_empty) durable::forget_programs(durable::log_folder_of(directory));
  return true;
}

}  // namespace cairn::node
