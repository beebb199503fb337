// SPDX-License-Identifier: Apache-2.0
// The ledger of files that processes use past the buffers: what cannot be served (a process without
// a slot or without the memory, a file that a full table has no room for) ends here. Such a file is
// stored, and in through mode for as long as the process may have it open.
//
// Each ledger is that of one connection (frontends/client/ledger_connection.h), which the kernel
// keeps as it keeps the files: it is over when the connection is closed, and its process has ended
// or its new image has told of the files anew. A process that closes the connection itself and
// lives on keeps its files here until it ends.
//
// Where there is no room for the connection, the file is in the node's own ledger, which never is
// over: it stays in through mode as long as the node lives. So a ledger costs one descriptor or
// none, however many files it has; the next process that works on them looks at
// what they have come to (memory/buffer/kernel_use.h).
//
// A file for which the table of objects has no room is in the ledger by its key alone. While there
// is one, UnservedBoard::keys is not 0, and the maker of a new object calls meet(). The
// key enters the ledger and the count is raised before the table gives room, so either the table's
// answer is an object that exists, or its later maker sees the count.
//
//   of one file in one ledger:   absent -> entering -> through   (-> key alone -> through)
//
// Thread safety: all functions from any thread; keep(), store_everything() and release_over() take
// as long as storing does. Ownership: owns the counts on Object::through that it made.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontends/protocol/protocol.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/hand_over.h"
#include "service/keeping/kept_memory.h"
#include "service/process/unique_fd.h"
#include "service/write_back/flusher.h"

namespace cairn::node {

using LedgerId = std::uint64_t;
using protocol::UnservedReason;

class UnservedFiles final : public HandOver {
 public:
  // The node's own. Connections are numbered from 1.
  static constexpr LedgerId kOfNode = 0;

  UnservedFiles(const NodeMemory& memory, Flusher& flusher, Owner self, KeptMemory& kept);

  // By a successor, once, when all connections of ledgers are known to it: the files that the dead
  // service had written down. Returns the highest number that a ledger has.
  LedgerId adopt();

  // What happened to connections and processes; these do not block. Those that return true have
  // ended a ledger: release_over() is due.
  void begin(LedgerId ledger, pid_t holder);
  bool hung_up(LedgerId ledger);
  bool taken_over(LedgerId ledger, pid_t by);
  bool holder_ended(pid_t holder);

  // Stores the file behind `fd` and keeps it in through mode for `ledger`. 0 or -errno.
  int keep(LedgerId ledger, const UniqueFd& fd, UnservedReason why);
  // `fd`, whose file is kept, works for that open description: its offset becomes the kernel's for
  // all who share it. O_APPEND, if that is its flag, or -errno.
  int move_offset_to_kernel(const UniqueFd& fd, DescriptionIndex index, std::uint32_t generation);
  // Stores everything that is dirty now, as far as it can be stored. 0 or the first -errno.
  int store_everything();
  // A new object, still in the through mode in which it began, is for the keys that the ledger may
  // have without one. 0 or -errno. Does not block.
  int meet(ObjectIndex object);
  void release_over();

  // For the audit: while it holds the lock, if it gets it, no count of through mode changes here.
  std::unique_lock<std::shared_mutex> hold_still();
  // How often each object is in through mode by this ledger, by its number.
  std::unordered_map<std::uint32_t, std::uint32_t> kept_objects() const;

  // Files that are kept now, and how often a file was taken in since the start, by reason.
  std::size_t count() const;
  using Counts = std::array<std::uint64_t, static_cast<unsigned>(UnservedReason::kCount)>;
  Counts counts() const;

 private:
  struct Ledger {
    pid_t holder = 0;
    bool is_closed = false;
    bool is_left = false;  // the holder has ended, or its new image needs this no more
    bool is_over() const { return is_closed && is_left; }
    // kNone: by its key alone, or still entering.
    std::map<ObjectKey, ObjectIndex> files;
  };
  // A file as a successor finds it.
  struct Row {
    bool is_used;
    pid_t holder;
    LedgerId ledger;
    ObjectKey key;
    ObjectIndex object;
  };
  // More files than these are forgotten with the service: they stay in through mode.
  static constexpr std::size_t kRows = 65536;

  bool hand_over(ObjectIndex, const Backing&) override { return false; }
  int request_flush(ObjectIndex object, bool durable) override;
  int meet_unserved(ObjectIndex object) override { return meet(object); }
  void discarded(ObjectIndex) override {}

  // All changes of a ledger's files pass these, with the lock.
  void write_down(LedgerId ledger, const ObjectKey& key, ObjectIndex object);
  void strike_out(LedgerId ledger, const ObjectKey& key);
  Row* row_of(LedgerId ledger, const ObjectKey& key);

  Actor make_actor() const;
  // -ENFILE: the table of objects is full.
  int enter(int fd, const StoreStatus& status, ObjectIndex* object);
  void note_key(LedgerId ledger, const ObjectKey& key);
  int settle(LedgerId ledger, const ObjectKey& key, ObjectIndex object, int error);
  void leave(ObjectIndex object) const;
  void end_ledger(LedgerId id, std::vector<ObjectIndex>* left);

  const NodeMemory& memory_;
  Flusher& flusher_;
  const Owner self_;
  std::shared_mutex still_;  // shared by all changes of through mode
  std::span<Row> rows_;
  mutable std::mutex mutex_;
  std::map<std::pair<LedgerId, ObjectKey>, std::size_t> row_numbers_;
  std::ptrdiff_t first_free_row_ = 0;  // none is free before
  std::map<LedgerId, Ledger> ledgers_;
  Counts counts_{};
};

// In words, for people.
const char* text_of(UnservedReason reason);

}  // namespace cairn::node
