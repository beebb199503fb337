// SPDX-License-Identifier: Apache-2.0
#include "service/node/replay_at_start.h"

#include <cstring>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/size_text.h"
#include "service/process/log.h"
#include "service/replay/recovery.h"

namespace cairn::node {
namespace {

constexpr std::int64_t kProgressNs = 2 * kNanosPerSecond;

void log_file(const durable::RecoveredFile& file) {
  if (file.outcome == durable::Outcome::kRestored || file.outcome == durable::Outcome::kMadeAnew)
    return log::info("recovered: {} ({})", file.path, format_size(file.bytes));
  log::warn("recovered: {} ({}): {}{}{}", file.path, format_size(file.bytes), name_of(file.outcome),
            file.written.empty() ? "" : " ", file.written);
  if (file.error != 0) log::warn("  because: {}", std::strerror(file.error));
}

Status replay(const NodeConfig& config) {
  const std::string& directory = config.tiers[durable_tier_of(config)].directory;
  durable::RecoveryOptions options;
  std::int64_t told_ns = monotonic_ns();
  options.progress = [&told_ns, &directory](std::uint64_t done, std::uint64_t all) {
    if (monotonic_ns() - told_ns < kProgressNs) return;
    told_ns = monotonic_ns();
    log::info("recovering from {}: {} of {}", directory, format_size(done), format_size(all));
  };
  const auto report = durable::recover(directory, options);
  if (!report && report.status().code() == StatusCode::kNotFound) return Status::ok();
  if (!report) return report.status();
  for (const durable::RecoveredFile& file : report->files) log_file(file);
  if (report->names > 0)
    log::warn("the machine died before the store had {} names: set right", report->names);
  if (!report->files.empty()) {
    log::warn("a node died with {} in the durable log: {} files recovered{}",
              format_size(report->bytes), report->files.size(),
              report->is_complete() ? "" : ", not all of them whole");
  }
  return Status::ok();
}

}  // namespace

Status replay_at_start(const NodeConfig& config, std::atomic<std::uint32_t>& is_done) {
  if (config.durable_log_bytes == 0 || is_done.load() != 0) return Status::ok();
  CAIRN_CRASH_POINT("replay.begun");
  CAIRN_RETURN_IF_ERROR(replay(config));
  is_done.store(1);
  CAIRN_CRASH_POINT("replay.done");
  return Status::ok();
}

}  // namespace cairn::node
