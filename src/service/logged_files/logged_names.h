// SPDX-License-Identifier: Apache-2.0
// What the durable log has of names: fsync of a directory is answered by it where it can say all
// that has changed, and by the store else.
//
// A directory is watched from its first fsync on, which the store answers. Later ones log which
// files its touched names mean (durable::NameChange), if these are files of the node that recovery
// can make again: the log has all of their data, or nobody has made any of it durable.
//
//   unwatched --fsync by the store--> known --log()--> in the log --fsync by the store--> known
//
// Invariants
//  1. After an answer of the log, and until the next fsync by the store, every record of the
//     directory stays; recovery sees all files that its names have meant since.
//  2. No data of a file leaves the log for the store while a name of it is in the log alone
//     (store_names_of()).
//  3. An fsync by the store is answered when the log durably says so: recovery does not bring back
//     what was before.
//
// Thread safety: any thread. The locks: a directory's, then the table's, then a file's, then the
// log's; none of them during an fsync. Ownership: borrows memory, files and log.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/durable_log/durable_log.h"
#include "service/durable_log/file_look.h"
#include "service/logged_files/left_directories.h"
#include "service/logged_files/logged_files.h"
#include "service/logged_files/name_story.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

class LoggedNames final : public NameKeeper {
 public:
  LoggedNames(const NodeMemory& memory, LoggedFiles& files, durable::DurableLog& log);

  // The changes of the directory since the log or the store has last had it.
  LogAttempt log(int directory);
  // The directory is made durable in the store, and watched from here on. Returns 0 or -errno.
  int store(int directory);

  int store_names_of(const ObjectKey& file) override;

  // Makes all of a file system durable where one of its directories cannot be found. Returns 0 or
  // -errno: -ENODEV if nothing of it is in use. Before the first name is stored.
  void use_store_sync(SyncStore sync) { left_.use_store_sync(std::move(sync)); }
  // By a successor: what the dead service's log has. Asks no store.
  void inherit() { left_.inherit(); }
  // Has the store make that durable. Returns 0 or the first -errno: it is to be tried again.
  int store_left() { return left_.store(std::nullopt); }
  // Frees the log of directories: of those that hold one of `pressing`, of those that rest, or of
  // all of a file system (0: of all). Return 0 or the first -errno.
  int retire_pressing(const std::vector<durable::PressingObject>& pressing);
  int retire_rested(std::int64_t rest_ns);
  int retire_all(std::uint64_t device);
  // Whether any directory is watched.
  bool is_idle() const;

 private:
  struct Directory {
    std::mutex mutex;
    ObjectKey key;
    StoreName store = StoreName::kUnknown;
    UniqueFd fd;
    int watch = -1;  // -1: no more
    KnownNames known;
    // It owes the store an fsync while the two differ.
    std::uint64_t debts = 0;
    std::uint64_t paid = 0;
    durable::LogObject number = durable::LogObject::kNone;
    durable::Lsn upto = durable::Lsn::kNone;  // its last record; kNone: the store has all
    std::string path;                         // as the log has it
    std::atomic<std::int64_t> logged_ns{0};
    std::atomic<std::int64_t> asked_ns{0};
  };
  using DirectoryPtr = std::shared_ptr<Directory>;
  using FilePlace = std::pair<StoreId, FileId>;
  struct Home {
    DirectoryPtr directory;
    durable::NamedFile file;
  };
  using Changes = std::vector<durable::NameChange>;

  DirectoryPtr find(const ObjectKey& key) const;
  DirectoryPtr watch(int directory, const ObjectKey& key);
  // Those of one file system, or of all.
  std::vector<DirectoryPtr> in_log(std::optional<StoreId> only = std::nullopt) const;
  int store(const DirectoryPtr& directory);
  void unwatch_rested();
  void forget_named(const DirectoryPtr& directory);
  // All that follow require the directory's lock.
  LogAttempt log_changes(const DirectoryPtr& directory);
  std::optional<Changes> changes_of(const DirectoryPtr& directory);
  bool describe(const Directory& directory, const durable::FileLook& look,
                durable::NameChange* change) const;
  LogAttempt append(const DirectoryPtr& directory, const Changes& changes);
  bool introduce(Directory& directory);
  void scan(const DirectoryPtr& directory);
  void look_again(const DirectoryPtr& directory, const std::vector<std::string>& names);
  void forget_names(const DirectoryPtr& directory);
  void learn(const DirectoryPtr& directory, const Changes& changes);
  bool is_known(const Directory& directory, const durable::NamedFile& file) const;

  const NodeMemory& memory_;
  LoggedFiles& files_;
  durable::DurableLog& log_;
  DirectoryWatch watch_;
  LeftDirectories left_;
  mutable std::mutex mutex_;
  std::map<ObjectKey, DirectoryPtr> directories_;
  std::map<FilePlace, Home> homes_;               // of files with a known name
  std::multimap<FilePlace, DirectoryPtr> named_;  // of the files that live records name
};

}  // namespace cairn::node
