// SPDX-License-Identifier: Apache-2.0
// The descriptors of backing files that clients handed over: what the service stores dirty data
// through.
//
// Invariants
//  1. An object with dirty blocks has its descriptor here, or in a message that is still in a
//     client's socket.
//  2. A descriptor is dropped only after kObjectHandedOver was cleared while nothing of the object
//     is dirty and nobody has it open, or nobody for writing where that is enough; a client that
//     opens it in between sees the cleared flag and hands over anew.
//
// Thread safety: all functions from any thread. Ownership: a descriptor closes with the last
// StoreFilePtr to it.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/tiers/node_memory.h"
#include "service/process/unique_fd.h"
#include "service/write_back/descriptor_budget.h"
#include "service/write_back/lost_pages.h"

namespace cairn::node {

struct StoreFile {
  struct Traits {
    bool rotational = false;
    // To open it again is dear: it is kept for a while when nobody needs it. Not a program, which
    // the kernel would not run meanwhile.
    bool lingers = false;
    // Its file system is a program, which keeps what it is given: it is sent on in small parts.
    bool is_sent_early = false;
  };
  StoreFile(ObjectIndex object_index, UniqueFd file, dev_t st_dev, const Traits& its)
      : object(object_index),
        fd(std::move(file)),
        backing(fd.get(), O_WRONLY),
        device(st_dev),
        traits(its) {}

  const ObjectIndex object;
  FileRoom room;  // none of one that is kept for fsync alone; outlives the descriptor
  const UniqueFd fd;
  PosixBacking backing;  // over `fd`
  const dev_t device;
  const Traits traits;
  // The run of the client that wrote it first: its share of the device pays for storing the file.
  std::atomic<std::uint32_t> run{0};

  // The flusher's notes.
  std::atomic<bool> queued{false};                          // in the queue or being flushed
  std::atomic<std::int64_t> rests_since_ns{0};              // monotonic: it has last left the queue
  std::atomic<PlacementReason> why{PlacementReason::kDue};  // it is in the queue
  std::atomic<bool> sync_owed{false};                       // stored since it was last made durable
  std::atomic<std::uint32_t> failures{0};                   // in a row
  std::atomic<int> error{0};                                // errno of the last failure
  LostRanges lost;                                          // by its tiers, and not stored
  std::atomic<std::int64_t> failing_since_ns{0};
  std::atomic<std::int64_t> last_failure_ns{0};
  std::atomic<std::int64_t> passed_ns{
      0};  // when the last pass began that stored all that was dirty then
  std::atomic<std::int64_t> not_before_ns{
      0};  // monotonic: back-off, or rest of a file that is always rewritten
};
using StoreFilePtr = std::shared_ptr<StoreFile>;

// Hears what fsync(2) and syncfs(2) say of what was stored: the kernel tells of a page that it has
// given up once, and takes it for clean from then on.
class SyncListener {
 public:
  virtual ~SyncListener() = default;
  // `error`: 0 or -errno.
  virtual void file_synced(const StoreFile& file, int error) = 0;
  virtual void store_sync_failed(StoreId store, int error) = 0;
};

class StoreFiles {
 public:
  explicit StoreFiles(const NodeMemory& memory) : memory_(memory) {}
  // Borrows it. Before the first file comes; null: nobody any more.
  void use_listener(SyncListener* listener) { listener_ = listener; }

  // Takes the descriptor of `object`, and the room that its sender reserved. Returns false when it
  // is not a writable descriptor of that very file.
  bool insert(ObjectIndex object, UniqueFd fd, FileRoom room, std::uint32_t run);
  // By a successor: a descriptor of the dead service, which may be of no object at all. Data that
  // was stored through it is not durable for certain. Returns whether it is kept.
  bool adopt(UniqueFd fd, FileRoom room);
  // The same of one that was open for reading, perhaps for an fsync that is still owed.
  void adopt_stored(const UniqueFd& fd);
  // And then: objects that have no descriptor here are handed over anew.
  void forget_missing();
  // Null when there is none.
  StoreFilePtr find(ObjectIndex object) const;
  std::vector<StoreFilePtr> snapshot() const;
  std::size_t count() const;

  // Drops the descriptor if invariant 2 allows it. Returns whether it did.
  bool drop_if_idle(const StoreFilePtr& file);
  // The same though programs read it, for one who asks the kernel for what it refuses while anybody
  // has the file open for writing: to run it, to lease it.
  bool drop_if_only_read(const StoreFilePtr& file);
  // drop_if_idle() for all; called when room is short, after deaths and drains. Returns how many
  // were dropped.
  std::size_t drop_idle();

  // Lets go of the file of `object` that is kept for fsync alone, if it has lost its last name
  // since: nobody else would get its room on the store. May wait for the store.
  void release(ObjectIndex object);
  // release() for all, because programs outside the node delete files without telling it.
  void release_deleted();
  // Whether anything is kept for fsync alone.
  bool keeps_closed() const;

  // Makes everything durable that was stored since the last call: fsync per file when few, else
  // syncfs per device. Returns 0 or the first errno.
  int make_durable();
  // Makes durable what was stored of the file. 0 or -errno.
  int sync_file(StoreFile& file) const;
  // The same through the descriptor that is kept for that; -ENODEV when there is none.
  int sync_closed(ObjectIndex object) const;
  // Whether what turns dirty of the file again can be stored: its descriptor is here, or is opened
  // anew.
  bool readmit(const StoreFile& file);
  // Makes everything durable that the file system `device` has been given. 0 or the errno; ENODEV
  // when nothing was ever stored there.
  int sync_store(dev_t device);

 private:
  bool drop_unless(const StoreFilePtr& file, bool (*is_needed)(const Object&));
  // For the syncfs of a file system. One at a time: threads that share the description get an error
  // once, and who comes second is to find the files doubted.
  struct SyncPlace {
    explicit SyncPlace(UniqueFd any) : directory(std::move(any)) {}
    const UniqueFd directory;  // any place on the file system
    std::mutex mutex;
  };
  struct Device {
    bool rotational = false;
    bool remote = false;
    bool in_user_space = false;
    std::shared_ptr<SyncPlace> place;
    bool sync_owed = false;  // something was stored whose descriptor is gone
    std::vector<StoreFilePtr>
        closed;  // stored, idle, still to be synced: a few are kept to spare the syncfs
  };
  void release_if(const std::function<bool(const StoreFile&)>& is_meant);
  Device& device_of(dev_t device, int fd);
  // syncfs. Returns 0 or the errno.
  int sync_all(dev_t device, SyncPlace& place) const;
  int sync_device(dev_t device, const Device& entry, const std::vector<StoreFilePtr>& owed) const;

  const NodeMemory& memory_;
  SyncListener* listener_ = nullptr;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint32_t, StoreFilePtr> files_;
  std::map<dev_t, Device> devices_;
};

// The same file through a description of our own, for writing: locks of the one that a client lent
// do not live on here. `fd` itself where the file's mode forbids that.
UniqueFd with_own_description(UniqueFd fd);
// After an error that a new descriptor might not meet (a server that has forgotten this one, a file
// system that was gone and is back): opens the file by its name again, under the same number.
// Returns whether the name leads to that very file; else nothing has changed. May wait for the
// store.
bool renew_descriptor(const StoreFile& file, const ObjectKey& key);
// The path that the kernel knows for `fd`; the text for people, "(deleted)" included.
std::string path_of_descriptor(int fd);
// The same for a descriptor of another process; empty when that has none.
std::string path_of_descriptor(pid_t pid, int fd);

}  // namespace cairn::node
