// SPDX-License-Identifier: Apache-2.0
#include "service/logged_files/node_log.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "service/durable_log/directory_storage.h"
#include "service/durable_log/left_programs.h"

namespace cairn::node {

Status NodeLog::open(const NodeConfig& config, const NodeMemory& memory, Owner self) {
  if (config.durable_log_bytes == 0) return Status::ok();
  const std::size_t tier = durable_tier_of(config);
  CAIRN_CHECK(tier < config.tiers.size());
  CAIRN_CHECK(log_ == nullptr);
  // Many segments: one is free again as soon as the files in it are stored.
  constexpr std::uint64_t kSegments = 16;
  constexpr std::uint64_t kSegmentMin = 4 << 20;
  constexpr std::uint64_t kSegmentMax = 64 << 20;
  durable::LogOptions options;
  options.capacity_bytes = config.durable_log_bytes;
  options.segment_bytes =
      std::clamp(config.durable_log_bytes / kSegments / 4096 * 4096, kSegmentMin, kSegmentMax);
  ServiceBoard& board = memory.service_board();
  options.last = &board.log_last;
  auto log = durable::DurableLog::open(config.tiers[tier].directory, options);
  if (!log) return log.status();
  log_ = std::move(log.value());
  files_ = std::make_unique<LoggedFiles>(memory, self, *log_);
  names_ = std::make_unique<LoggedNames>(memory, *files_, *log_);
  files_->use_names(*names_);
  const std::string folder = durable::log_folder_of(config.tiers[tier].directory);
  // Before a program can attach.
  CAIRN_RETURN_IF_ERROR(durable::note_programs(folder, memory.control().fd()));
  board.log_id.store(log_->id());
  if (folder.size() < ServiceBoard::kFolderMax)
    std::memcpy(board.log_folder, folder.c_str(), folder.size() + 1);
  board.has_log.store(1);
  return Status::ok();
}

void NodeLog::close() {
  names_.reset();
  files_.reset();
  log_.reset();
}

}  // namespace cairn::node
