// SPDX-License-Identifier: Apache-2.0
// What the durable log has of the node's files, and the way of their dirty pages into it.
//
// A file is in the log from its first record until all of its records are on its store, and durable
// there. As long, Object::log_position is not 0, the object's record stays
// (ObjectTable::reclaim()), and a process that changes the file past the log tells the service.
//
// Invariants
//  1. Before anything of a file in the log is written to the store, the log has durably that the
//     service is storing it: recovery takes no trace of ours for somebody else's change. The first
//     record of a file says so, and it holds until the last one is retired.
//  2. A finished fsync that the store has paid for is followed by the durable word that all records
//     of before are stored: recovery brings nothing back that is older than what was acknowledged.
//  3. Only pages that have changed since they were logged are logged again. A block's bucket and
//     the sequence of its lock say that none has; digests say which.
//  4. The service logs newer bytes of a block that the log has before it stores them, where the log
//     takes them: recovery after the death of the node alone puts nothing older over them.
//  5. A block that turns clean without being in the log marks its object (Object::note_store_owed).
//
// Thread safety: any thread; the files' locks are taken before the log's. No function takes an
// object's lock: a client may hold it while it waits for an answer. Ownership: borrows the memory
// and the log.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/flush/flush_object.h"
#include "memory/tiers/node_memory.h"
#include "service/durable_log/durable_log.h"
#include "service/logged_files/logged_file.h"
#include "service/logged_files/name_keeper.h"
#include "service/logged_files/store_names.h"

namespace cairn::node {

// What the log had of a file when somebody began to store it.
struct LogMark {
  durable::Lsn upto = durable::Lsn::kNone;  // kNone: nothing
  std::uint32_t owed = 0;                   // Object::store_owed
  std::uint32_t failures = 0;               // Object::sync_failures
};

class LoggedFiles final : public StoreWitness {
 public:
  LoggedFiles(const NodeMemory& memory, Owner self, durable::DurableLog& log);
  LoggedFiles(const LoggedFiles&) = delete;
  LoggedFiles& operator=(const LoggedFiles&) = delete;
  // Before the first file is logged.
  void use_names(NameKeeper& names) { names_ = &names; }

  enum class Why : std::uint8_t { kAsked, kUnasked };
  // Appends what has changed of the object since the log has last had it. `fd` is of its backing
  // file; -1 where the service has none.
  LogAttempt log_changes(ObjectIndex object, int fd, Why why);
  // The same for a part of it: kLogged speaks of that.
  LogAttempt log_portion(ObjectIndex object, int fd, Why why, LogPortion* portion);
  // Before something of the file is stored that need not be durable: what the log has older bytes
  // of is logged, as much as is stored at a time. Returns: whether only blocks that the log has may
  // be stored now.
  bool prepare_store(ObjectIndex object, int fd);
  // A file's descriptor has come, and its store answers now.
  void note_store(ObjectIndex object, int fd) {
    (void)store_names_.name_of(memory_.objects().at(object).store(), fd);
  }
  // From here on all of it is logged before: the node may be killed at any moment.
  void log_before_storing() { logs_first_.store(true); }
  // A client is about to cut the file.
  LogAttempt log_cut(ObjectIndex object, std::uint64_t size);
  void log_renamed(ObjectIndex object, const std::string& path);
  // Once this is durable, the log knows where all files have gone.
  durable::Lsn last_rename() const { return last_rename_.load(); }
  // Nobody can reach the file any more. Its record may be another file's by now.
  LogAttempt log_removed(ObjectIndex object);

  // Before anything of the file is stored by somebody who wants all of it to be durable in the
  // store, or who may be killed in the middle.
  LogMark begin_storing(ObjectIndex object);
  // All that the mark speaks of is durable in the store. Returns 0 or -errno: then the log has not
  // taken that.
  int end_storing(ObjectIndex object, const LogMark& mark);
  // The store has failed to make durable what it was given, and tells each of us once: no file that
  // the log has of it counts as stored any more until its own fsync says so.
  void doubt(StoreId store);
  // An fsync of the file itself has said that the store has all of it. A doubt that came since it
  // began stays. `failures_before`: Object::sync_failures from then.
  void note_good_sync(ObjectIndex object, std::uint32_t failures_before);
  // An fsync of the file itself has failed: what the tiers have is dirty again, or else cannot be.
  // What only the log has stays in it, for recovery. `dirty_before`: the file's dirty_pages() from
  // before all of it turned dirty.
  enum class OwnSync : std::uint8_t { kDirtyAgain, kFailed };
  void note_failed_sync(ObjectIndex object, OwnSync outcome, const LoggedPages& dirty_before);
  // The dirty pages of the blocks that the log has.
  LoggedPages dirty_pages(ObjectIndex object);
  // The name that recovery would look for; empty where the log does not have the file.
  std::string path_of(ObjectIndex object) const;

  bool is_logged(ObjectIndex object, BlockNumber number, BucketIndex bucket,
                 std::uint32_t sequence) override;
  bool has_bytes(ObjectIndex object, const StoredPages& stored) override;
  void log_newer(ObjectIndex object, const StoredPages& stored) override;

  // By a successor: what the dead service's log has of files that are still known.
  void inherit(ObjectIndex object);

  // Whether recovery could make the file from the log alone.
  bool has_whole(ObjectIndex object) const;

  struct InLog {
    ObjectIndex object = ObjectIndex::kNone;
    durable::LogObject number = durable::LogObject::kNone;
    std::int64_t logged_ns = 0;  // monotonic, when it was last appended to
  };
  std::vector<InLog> all() const;
  durable::DurableLog& log() { return log_; }

 private:
  using LoggedFilePtr = std::shared_ptr<LoggedFile>;
  LoggedFilePtr find(ObjectIndex object) const;
  LoggedFilePtr find_or_make(ObjectIndex object);
  // All that follow require the file's lock.
  enum class Introduced : std::uint8_t { kYes, kFull, kNeedsStore };
  Introduced introduce(ObjectIndex object, LoggedFile& file, int fd);
  Status open_window(LoggedFile& file) const;
  void end(ObjectIndex object, LoggedFile& file);
  template <typename Log>
  void log_at_rest(ObjectIndex object, LoggedFile& file, Log&& log);
  void log_known(ObjectIndex object, LoggedFile& file);
  int retire_records(ObjectIndex object, const LogMark& mark);
  void forget(ObjectIndex object, const LoggedFilePtr& file);

  const NodeMemory& memory_;
  const Owner self_;
  durable::DurableLog& log_;
  NameKeeper* names_ = nullptr;
  const std::uint64_t seed_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint32_t, LoggedFilePtr> files_;
  StoreNames store_names_;
  std::atomic<bool> logs_first_{false};
  std::atomic<durable::Lsn> last_rename_{durable::Lsn::kNone};
};

}  // namespace cairn::node
