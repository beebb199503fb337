// SPDX-License-Identifier: Apache-2.0
// What was stored and is not durable yet, of each file system, and what was lost on that way.
//
// A file that nobody has open any more is kept for its fsync: a few with their descriptors, the
// others by their names, for the syncfs of their file system. A loss is said at each call until
// the file is gone or stored again: a drain does not succeed because it is the second one.
//
// Invariants
//  1. All that was stored of an object is durable, or the object has a StoreFile that owes its
//     fsync, or it is among the closed files here, or the device owes a syncfs.
//
// Thread safety: all functions from any thread. A syncfs of a file system excludes others of the
// same one: threads that share a description hear of a failure once, and the second thread finds
// that the first has passed it on. Lock order: a file's sync_mutex, a place's mutex, mutex_.
// Ownership: owns the descriptors that it keeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "service/write_back/lost_files.h"
#include "service/write_back/store_file.h"
#include "service/write_back/sync_listener.h"

namespace cairn::node {

class UnsyncedFiles {
 public:
  explicit UnsyncedFiles(const NodeMemory& memory) : memory_(memory), lost_(memory) {}
  // Borrows it. Before the first file comes; null: nobody any more.
  void use_listener(SyncListener* listener) { listener_ = listener; }
  SyncListener* listener() const { return listener_; }

  struct DeviceTraits {
    bool rotational = false;
    bool remote = false;
    bool in_user_space = false;
  };
  // `fd`: any file of it. The first time this asks the file system.
  DeviceTraits traits_of(dev_t device, int fd);

  // The descriptor of the file is about to close, and its fsync is owed.
  void keep(const StoreFile& file);
  // By a successor: a file that its predecessor had stored, open for reading.
  void adopt(const UniqueFd& fd);

  // And then: bytes of the file were lost before.
  void adopt_lost(ClosedFile file) { lost_.note(std::move(file)); }
  // The path of a closed file; empty when none is known here.
  std::string path_of(ObjectIndex object) const;

  // Lets go of the file of `object` that is kept, if it has lost its last name since.
  void release(ObjectIndex object);
  void release_deleted();
  // Whether a descriptor is kept.
  bool keeps_any() const;

  // Makes all of these durable, and all that is kept: fsync per file when few, else syncfs per
  // device. Returns 0 or the first errno; then the files owe their fsync again. One call at a time.
  int make_durable(const std::vector<StoreFilePtr>& owed);
  // 0 or -errno.
  int sync_file(StoreFile& file, SyncDepth depth);
  // Through the descriptor that is kept; -ENODEV when there is none.
  int sync_closed(ObjectIndex object);
  // Advances after each fsync that has failed, when what the tiers have of its file is dirty again.
  std::uint64_t failures() const { return failures_.load(); }
  // Everything that the file system has been given. 0 or the errno; ENODEV when nothing was ever
  // stored there.
  int sync_store(dev_t device);
  // Files that have lost bytes: neither the store nor the tiers have them.
  std::vector<ClosedFile> lost() const { return lost_.all(); }

 private:
  // For the syncfs of a file system.
  struct SyncPlace {
    explicit SyncPlace(UniqueFd any) : directory(std::move(any)) {}
    const UniqueFd directory;  // any place there
    std::mutex mutex;
  };
  // What the files of a file system owe that nobody has open.
  struct Debts {
    std::vector<StoreFilePtr> closed;  // with their descriptors: a few, to spare the syncfs
    std::map<ObjectKey, ClosedFile> others;
    bool owes_sync = false;  // of what is not among these
    int error = 0;           // errno of a syncfs that has failed since they were taken last
    void note(ClosedFile file);
    void add(Debts more);
    bool is_by_name() const { return owes_sync || !others.empty(); }
  };
  struct Device {
    DeviceTraits traits;
    std::shared_ptr<SyncPlace> place;
    Debts debts;
  };
  Device& device_of(dev_t device, int fd);
  void release_if(const std::function<bool(const StoreFile&)>& is_meant);
  int sync_device(dev_t device, Debts debts, std::vector<StoreFilePtr> owed);
  int sync_by_name(dev_t device, Debts* debts);
  int sync_each(const std::vector<StoreFilePtr>& owed);
  void note_lost(const StoreFile& file, const StoredRanges& stored);
  static std::vector<StoredRanges> take_stored(const std::vector<StoreFilePtr>& files);
  void note_syncs(const Debts& debts, bool are_under_way);
  void note_sync(ObjectIndex object, const ObjectKey& key, bool is_under_way);

  const NodeMemory& memory_;
  SyncListener* listener_ = nullptr;
  mutable std::mutex mutex_;
  std::map<dev_t, Device> devices_;
  LostFiles lost_;
  std::atomic<std::uint64_t> failures_{0};
};

}  // namespace cairn::node
