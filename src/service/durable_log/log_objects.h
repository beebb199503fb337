// SPDX-License-Identifier: Apache-2.0
// Which files have records in the log that are not on their backing store yet, and in which
// segments. The writer keeps it while it appends; opening a log makes it again from the records.
//
// Thread safety: none; the log's lock. Ownership: values.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "service/durable_log/record_format.h"

namespace cairn::durable {

struct LoggedObject {
  FileIdentity identity;
  FileState store;
  StoringWindow window;
  unsigned storing = 0;  // begin_storing() without a retire() yet
  // The segment that has the object's statement as it is now; 0: none has.
  std::uint64_t introduced_in = 0;
  bool is_held = true;        // somebody may use the number
  bool is_directory = false;  // its records are of names
  // Since this record nobody can reach the file; kNone: somebody can.
  Lsn removed = Lsn::kNone;
  std::uint64_t removed_in = 0;  // the boot mark of that time
  // Segments with live records, and the last of them there.
  std::map<std::uint64_t, Lsn> live;

  ObjectStatement statement() const { return {identity, store, window}; }
};

class LogObjects {
 public:
  // Called for each segment that has one live object less, with the record that says so.
  using Release = void (*)(void* context, std::uint64_t segment, Lsn by);

  LoggedObject* find(LogObject number);
  const LoggedObject* find(LogObject number) const;
  LogObject find(const ObjectKey& key) const;
  // Requires: the key is not there. kNone: the next number that is free.
  LogObject add(const FileIdentity& identity, const FileState& store,
                LogObject number = LogObject::kNone);
  // Erases the object unless it has live records or somebody may use it.
  void drop_idle(LogObject number);

  // A record of the object that has to be stored some day is in `segment`. Returns whether it is
  // the first there.
  bool add_live(LogObject number, std::uint64_t segment, Lsn lsn);
  // Everything up to `upto` is stored, or void; the record `by` says so.
  void retire(LogObject number, Lsn upto, Lsn by, Release release, void* context);

  std::uint64_t live_objects() const { return live_objects_; }
  const std::unordered_map<std::uint64_t, LoggedObject>& all() const { return objects_; }

 private:
  std::unordered_map<std::uint64_t, LoggedObject> objects_;
  std::map<ObjectKey, LogObject> by_key_;
  std::uint64_t last_number_ = 0;
  std::uint64_t live_objects_ = 0;
};

}  // namespace cairn::durable
