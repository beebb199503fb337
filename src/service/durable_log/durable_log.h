// SPDX-License-Identifier: Apache-2.0
// The durable log, as a node writes it: what is appended and committed here survives the machine.
//
// The log is a ring of segments of one size. Records go to the newest; the oldest is used again
// once everything in it is on the backing store ("retired"). The order matters: a statement that
// data is stored always outlives the data, so recovery never puts old bytes over newer ones.
//
//   auto log = DurableLog::open(tier_directory, {.capacity_bytes = 1 << 30});
//   auto object = log->add_object(identity, state_on_store);          // before its first record
//   auto lsn = log->append_data(object, {offset, bytes}, state);      // returns at once
//   Status durable = log->commit(*lsn);                               // now it survives
//   ...
//   log->commit(*log->begin_storing(object));                        // before the store is written
//   ... pwrite and fsync on the store ...
//   log->retire(object, upto, state_on_store);                        // its room can be used again
//
// Invariants
//   1. Records are durable in the order of their numbers: commit(n) means all up to n.
//   2. An error of a write or a flush is final: which bytes of it reached the device nobody knows,
//      and the kernel tells it once. Every later call returns it. Nothing that was committed is
//      affected.
//   3. A segment is used again only if no earlier one is in use, none of its records is live, and
//      all of them are durable.
//   4. Memory is bounded by live objects, live pairs of object and segment, and appending threads.
//
// Thread safety: all functions, from any thread; appends of one object take effect in the order in
// which the calls are made. Two threads of the log's own flush and prepare segments.
// Ownership: owns its files, and the lock of the tier.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/durable_log/log_figures.h"
#include "service/durable_log/log_record.h"
#include "service/durable_log/log_storage.h"
#include "service/durable_log/name_change.h"

namespace cairn::durable {

class LogCore;
struct FoundLog;

class DurableLog {
 public:
  // Opens the log in the tier's directory (subfolder kLogFolder), or makes it. What an earlier node
  // has left there that is not stored yet stays, occupies its segments, and leftovers() counts it:
  // recovery (service/replay) should have run first.
  // Errors: kUnavailable: another node has it; kIncompatible: another version; kDenied; kInvalid:
  // damaged; the messages say what to do.
  // `found` hears of all records that the log has, as a scan would tell it of them: a recovery
  // need not read the log again.
  static Result<std::unique_ptr<DurableLog>> open(const std::string& tier_directory,
                                                  const LogOptions& options,
                                                  FoundLog* found = nullptr);
  static Result<std::unique_ptr<DurableLog>> open(std::unique_ptr<LogStorage> storage,
                                                  const LogOptions& options,
                                                  FoundLog* found = nullptr);
  // Flushes and closes in order, as close() does, unless the log has failed.
  ~DurableLog();
  DurableLog(const DurableLog&) = delete;
  DurableLog& operator=(const DurableLog&) = delete;

  // The number of a file. `store` is what the file looks like on the backing store now. A file that
  // has a number keeps it, by its key; another path is noted as a rename. Writes nothing yet.
  // Errors: kInvalid: path or handle too long.
  Result<LogObject> add_object(const FileIdentity& identity, const FileState& store);
  // The number that a file has from a node before, kept until forget() as one that was added; kNone
  // when it has none.
  LogObject hold(const ObjectKey& key);
  // The path by which it is known; empty where it has no such object.
  std::string path_of(LogObject object) const;
  // The caller will not use the number again. Its records stay until they are retired.
  void forget(LogObject object);

  // Appends one record and returns its number, or kNone when there is nothing to say. It is durable
  // once commit() of it, or of a later one, has returned. `state` is the file's size and time as
  // programs see them, after the change. The bytes may change during the call; then any mixture of
  // old and new is logged, per byte.
  // Errors: kExhausted: the log is full (ENOSPC): store what pressure() names, or store the file
  // itself; kNotFound: no such object; kInvalid: too long; else the log has failed.
  Result<Lsn> append_data(LogObject object, const DataRange& range, const FileState& state);
  // The most bytes that one record of data takes.
  std::size_t data_bytes_max() const;
  Result<Lsn> append_size(LogObject object, const FileState& state);
  Result<Lsn> append_renamed(LogObject object, const std::string& path);
  // The file's last name is gone, and nobody can reach it. The store may have lost neither for good
  // yet: where a crash brings the file back, recovery brings its data, and nothing elsewhere. So
  // the records stay until retire() says that the store has lost it durably.
  Result<Lsn> append_removed(LogObject object);
  // The removed files that still have such records; those of this start of the machine only.
  std::vector<RemovedObject> removed() const;

  // What the names of a directory mean, all of it or none after a crash. The directory is an object
  // as files are: add_object() gives it its number, and retire() says that its store has the names.
  Result<Lsn> append_names(LogObject directory, std::span<const NameChange> changes);
  // The identity of the log, which all its records bear.
  std::uint64_t id() const;
  // The directories with names that their store does not have for certain.
  std::vector<LoggedDirectory> directories() const;

  // Says that the service begins to write the file to its store. Commit it before the first write
  // there: without it recovery would take the service's own traces for somebody else's change. The
  // calls may nest; each is ended by one retire().
  Result<Lsn> begin_storing(LogObject object);
  // Ends one begin_storing(): everything of the object up to `upto` is on its store and durable
  // there, and the file looks like `store` there. kNone: nothing is (the attempt failed). Durable
  // with the next commit, or after a second; if that is lost, recovery stores the same bytes again.
  Status retire(LogObject object, Lsn upto, const FileState& store);

  // Blocks until all records up to `lsn` are durable. One flush serves all who wait.
  Status commit(Lsn lsn);
  // The same, but gives up: kUnavailable (ETIMEDOUT) when the device has not answered in time.
  Status commit_within(Lsn lsn, std::chrono::milliseconds limit);

  // The last record appended, the last one durable.
  Lsn appended() const;
  Lsn durable() const;
  // Ok, or the error that ended the log (invariant 2).
  Status health() const;

  // Objects that hold the oldest segment, when the log is nearly full (three quarters); else empty.
  std::vector<PressingObject> pressure() const;
  // The same at any time: what to store first. At most `count`.
  std::vector<PressingObject> oldest(std::size_t count) const;
  // Called, on the appending thread and without locks held, when pressure() becomes non-empty or
  // changes to the next segment. Must not block. Set before the first append.
  void on_pressure(std::function<void()> call);

  // Live objects that an earlier node has left.
  std::uint64_t leftovers() const;
  LogFigures figures() const;

  // Flushes everything, writes the clean end, and stops the threads; the log then takes nothing
  // more. The tier stays locked until the log is gone. Errors: those of the flush.
  Status close();

 private:
  explicit DurableLog(std::unique_ptr<LogCore> core);
  std::unique_ptr<LogCore> core_;
};

}  // namespace cairn::durable
