// SPDX-License-Identifier: Apache-2.0
#include "service/node/replay_at_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/printable_text.h"
#include "base/size_text.h"
#include "memory/backing/posix_backing.h"
#include "service/node/start_notice.h"
#include "service/process/log.h"
#include "service/replay/outcome_text.h"
#include "service/replay/recovery.h"

namespace cairn::node {
namespace {

constexpr std::int64_t kProgressNs = 2 * kNanosPerSecond;
// Files that the launcher hears of by name.
constexpr std::size_t kToldMax = 20;

// To the node's log, which goes with a private node, and to the launcher.
void tell(const Heritage& heritage, std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    log::warn("{}", line);
    const std::string notice = std::string(kNoticeMark).append(line) + '\n';
    if (heritage.launcher >= 0) (void)!::write(heritage.launcher, notice.data(), notice.size());
  }
}

void tell_outcome(const Heritage& heritage, const std::string& directory,
                  const durable::RecoveryReport& report) {
  std::uint64_t bytes = 0;
  std::size_t kept = 0;
  std::size_t told = 0;
  for (const durable::RecoveredFile& file : report.files) {
    const bool is_kept = file.outcome == durable::Outcome::kKept;
    kept += is_kept ? 1 : 0;
    bytes += is_kept ? 0 : file.bytes;
    log::info("recovered: {} ({}): {}", printable(file.path), format_size(file.bytes),
              name_of(file.outcome));
    const std::string text = text_of(file, false);
    if (text.empty() || told++ >= kToldMax) continue;
    tell(heritage, text);
  }
  if (told > kToldMax) tell(heritage, "and " + std::to_string(told - kToldMax) + " more files");
  for (const durable::Damage& damage : report.scan.damage) {
    tell(heritage, fmt::format("{}: some of its log is damaged ({}); what that said is lost",
                               printable(directory), damage.segment));
  }
  if (report.names > 0) {
    tell(heritage,
         fmt::format("set right {} names that the store had lost with the machine", report.names));
  }
  if (kept > 0) {
    tell(heritage, fmt::format("programs of this node get EIO for what is not recovered: {} files. "
                               "When it has ended, and their store works, `cairn recover {}` "
                               "stores them",
                               kept, printable(directory)));
  }
  if (report.files.size() > kept) {
    tell(heritage,
         fmt::format("recovered {} in {} files from the durable tier in {}, where a node "
                     "that died had left them",
                     format_size(bytes), report.files.size() - kept, printable(directory)));
  }
}

// The object of a file that stays in the log: programs find it, and that they must not use it.
// If the name means another file by now, that one is forbidden as well; no bytes are lost by it.
Status forbid(const NodeMemory& memory, Owner self, const std::string& path) {
  ObjectTable& objects = memory.objects();
  StoreStatus status;
  const std::uint32_t reclaims = objects.reclaims();
  const int error = store_status_at(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, &status);
  if (error == -ENOENT || error == -ENOTDIR) return Status::ok();
  if (error < 0) {
    return Status::from_errno(-error, printable(path) +
                                          ", of which the durable log has bytes that "
                                          "no program may miss, cannot be looked at");
  }
  status.stamp.reclaims = reclaims;
  Acquisition how;
  const ObjectIndex index = objects.acquire(status.key, status.stamp, self, memory.owners(), &how);
  if (index == ObjectIndex::kNone)
    return {StatusCode::kExhausted, "no room for the files that the durable log still has"};
  objects.at(index).note_trouble(kOwedByLog, true);
  objects.at(index).opens.fetch_sub(1);
  return Status::ok();
}

Status forbid_owed(const NodeMemory& memory, Owner self,
                   const std::vector<durable::RecoveredFile>& files) {
  for (const durable::RecoveredFile& file : files) {
    if (file.outcome == durable::Outcome::kKept && !file.written.empty())
      CAIRN_RETURN_IF_ERROR(forbid(memory, self, file.written));
  }
  return Status::ok();
}

Result<durable::RecoveryReport> replay(const std::string& directory) {
  durable::RecoveryOptions options;
  std::int64_t told_ns = monotonic_ns();
  options.progress = [&told_ns, &directory](std::uint64_t done, std::uint64_t all) {
    if (monotonic_ns() - told_ns < kProgressNs) return;
    told_ns = monotonic_ns();
    log::info("recovering from {}: {} of {}", directory, format_size(done), format_size(all));
  };
  auto report = durable::recover(directory, options);
  if (!report && report.status().code() == StatusCode::kNotFound) return durable::RecoveryReport{};
  return report;
}

}  // namespace

Status replay_at_start(const NodeConfig& config, const NodeMemory& memory, Owner self,
                       Heritage& heritage) {
  if (config.durable_log_bytes == 0 || heritage.log_replayed.load() != 0) return Status::ok();
  CAIRN_CRASH_POINT("replay.begun");
  const std::string& directory = config.tiers[durable_tier_of(config)].directory;
  const auto report = replay(directory);
  if (!report) return report.status();
  CAIRN_RETURN_IF_ERROR(forbid_owed(memory, self, report->files));
  tell_outcome(heritage, directory, *report);
  heritage.log_replayed.store(1);
  CAIRN_CRASH_POINT("replay.done");
  return Status::ok();
}

}  // namespace cairn::node
