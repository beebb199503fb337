// SPDX-License-Identifier: Apache-2.0
// What the log has of one file of the node, and of each of its blocks.
//
// Thread safety: the file's lock. Ownership: values.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "base/clock.h"
#include "memory/catalog/object.h"
#include "service/durable_log/log_figures.h"

namespace cairn::node {

// A part of a file's dirty blocks, for a caller that logs them piece by piece. A pass begins at
// `first`, ends when it has logged more than `bytes_max`, and sets `first` to the next part.
struct LogPortion {
  std::uint32_t first = 0;
  std::uint64_t bytes_max = 0;
  bool is_last = false;
  bool only_known = false;  // blocks of which the log may have older bytes, and no others
  int unreadable = 0;       // -errno of the last block that its tier did not give
};

struct LoggedBlock {
  BucketIndex bucket{};
  std::uint32_t sequence = 0;
  std::uint16_t pages = 0;  // which have a digest: the log has them
  // Of them, those whose records may be void: they are logged again, changed or not.
  std::uint16_t stale = 0;
  durable::Lsn lsn = durable::Lsn::kNone;  // the last record of the block
  std::array<std::uint64_t, kPagesPerBlock> digests{};
};
// Pages of blocks, by the blocks' numbers.
using LoggedPages = std::unordered_map<std::uint32_t, std::uint16_t>;

struct LoggedFile {
  std::mutex mutex;
  durable::LogObject number = durable::LogObject::kNone;
  bool is_storing = false;                    // since its first record
  durable::Lsn window = durable::Lsn::kNone;  // durable with this one: that it is being stored
  durable::Lsn upto = durable::Lsn::kNone;    // its last record
  durable::FileState state;                   // as its last record says
  std::int64_t logged_ns = 0;
  std::int64_t asked_ns = 0;
  bool is_whole = false;  // nothing of it was on the store before
  bool is_gone = false;   // all retired: another record is to be made
  // Up to here the log may have blocks that are not among these.
  durable::Lsn others_upto = durable::Lsn::kNone;
  std::unordered_map<std::uint32_t, LoggedBlock> blocks;

  // Whether recovery could bring bytes of the block.
  bool may_have(std::uint32_t block) const {
    return others_upto != durable::Lsn::kNone || blocks.contains(block);
  }

  // Records up to there are void: the next pass logs a page although they had it.
  void forget_until(durable::Lsn last) {
    std::erase_if(blocks, [last](const auto& block) { return block.second.lsn <= last; });
    for (auto& entry : blocks) entry.second.stale = entry.second.pages;
    if (others_upto <= last) others_upto = durable::Lsn::kNone;
  }
};

// Requires: the file's lock.
inline void note_appended(Object& object, LoggedFile& file, durable::Lsn lsn) {
  CAIRN_CHECK(lsn > file.upto);
  file.upto = lsn;
  // The first record brings the log's word that the file is being stored with it.
  if (file.window == durable::Lsn::kNone) file.window = lsn;
  file.logged_ns = monotonic_ns();
  if (object.is_marked(kMarkOutOfLog)) object.mark(kMarkOutOfLog, false);
  object.log_position.store(durable::raw(lsn), std::memory_order_seq_cst);
}

}  // namespace cairn::node
