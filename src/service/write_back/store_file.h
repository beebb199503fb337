// SPDX-License-Identifier: Apache-2.0
// A descriptor of a backing file that a client has handed over, and the flusher's notes on it.
//
// Thread safety: any thread. Ownership: the descriptor closes with the last StoreFilePtr.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "memory/backing/posix_backing.h"
#include "memory/tiers/node_memory.h"
#include "service/process/unique_fd.h"
#include "service/write_back/descriptor_budget.h"
#include "service/write_back/lost_pages.h"
#include "service/write_back/store_backing.h"

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
  StoreFile(ObjectIndex object_index, const ObjectKey& its_key, UniqueFd file, const Traits& its)
      : object(object_index),
        key(its_key),
        fd(std::move(file)),
        plain(fd.get(), O_WRONLY),
        backing(plain, stored),
        device(static_cast<dev_t>(raw(its_key.store))),
        traits(its) {}

  const ObjectIndex object;
  const ObjectKey key;  // the object's record may become another file's once this one is closed
  FileRoom room;        // none of one that is kept for fsync alone; outlives the descriptor
  const UniqueFd fd;
  PosixBacking plain;     // over `fd`
  RecordedRanges stored;  // since it was last made durable
  StoreBacking backing;   // records them
  const dev_t device;
  const Traits traits;
  // The run of the client that wrote it first: its share of the device pays for storing the file.
  std::atomic<std::uint32_t> run{0};

  // The flusher's notes.
  std::atomic<bool> queued{false};                          // in the queue or being flushed
  std::atomic<std::int64_t> rests_since_ns{0};              // monotonic: it has last left the queue
  std::atomic<PlacementReason> why{PlacementReason::kDue};  // it is in the queue
  // Stored since it was last made durable. An fsync clears it under the sync_mutex.
  std::atomic<bool> sync_owed{false};
  // The store had failed before this description was opened, so its fsync cannot say whether the
  // file has lost something.
  std::atomic<bool> is_younger_than_doubt{false};
  std::mutex sync_mutex;  // held by an fsync until what it said has been heard (sync_listener.h)
  std::atomic<std::uint32_t> failures{0};  // in a row
  std::atomic<int> error{0};               // errno of the last failure
  LostRanges lost;                         // by its tiers, and not stored
  std::atomic<std::int64_t> failing_since_ns{0};
  std::atomic<std::int64_t> last_failure_ns{0};
  std::atomic<std::int64_t> passed_ns{
      0};  // when the last pass began that stored all that was dirty then
  std::atomic<std::int64_t> not_before_ns{
      0};  // monotonic: back-off, or rest of a file that is always rewritten
};
using StoreFilePtr = std::shared_ptr<StoreFile>;

// Nobody has looked since a failure of the store whether it was this file's.
inline bool is_doubted(const Object& object) {
  return (object.log_trouble.load() & kLogDoubted) != 0;
}
// The path that the kernel knows for `fd`; the text for people, "(deleted)" included.
std::string path_of_descriptor(int fd);
// The same for a descriptor of another process; empty when that has none.
std::string path_of_descriptor(pid_t pid, int fd);
// A regular file with that key, by what the kernel knows, or else by what the store says.
bool is_file_of(int fd, const ObjectKey& key, StoreStatus* status);
// The same file through another description; none where its mode, or a program that runs it,
// forbids that.
UniqueFd reopen(int fd, int access_mode);

}  // namespace cairn::node
