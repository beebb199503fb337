// SPDX-License-Identifier: Apache-2.0
// Stores what is dirty of one file: a turn of it in the background, or all of it at once for a
// caller that waits; notes failures, and throws away what deleted files leave behind.
//
// Thread safety: all functions from any thread. At most one thread has a turn of a file at a time
// (StoreFile::queued). Ownership: borrows everything.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "memory/flush/flush_object.h"
#include "memory/tiers/actor.h"
#include "service/logged_files/logged_files.h"
#include "service/write_back/store_files.h"

namespace cairn::node {

struct FlushOptions {
  std::uint32_t delay_ms = 500;
  std::uint32_t streams = 2;
  std::uint32_t dirty_high_percent = 60;
  std::uint32_t retry_ms = 1000;
  std::uint64_t amount_bytes = 4 << 20;  // dirty bytes of one file that are due whatever their age
};

class StoreWriter final : private SyncListener {
 public:
  static constexpr std::uint32_t kRetryMsMax = 30'000;
  static constexpr std::uint64_t kTurnBytes = 32 << 20;
  static constexpr std::uint64_t kUnsentBytesMax = 4 << 20;

  using Log = std::function<void(const std::string&)>;
  StoreWriter(const NodeMemory& memory, StoreFiles& files, Owner self, const FlushOptions& options,
              Log log);
  ~StoreWriter() override { files_.use_listener(nullptr); }
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  // The node has a durable log. Before the first turn.
  void use_log(LoggedFiles& logged) { logged_ = &logged; }

  // The service as an actor that counts in this shard of its slot.
  Actor make_actor(std::size_t shard) const;

  // By a successor, once it has the descriptors. Its predecessor may have waited for an fsync that
  // has failed: what the tiers have of such files is stored again. May wait for the store.
  void take_over();
  // The same for one object whose fsync was under way (kSyncUnderWay, which the caller clears).
  // Returns false where bytes may be lost, because the tiers do not have all of it.
  bool store_unheard(ObjectIndex object);
  // Without asking the store of anything. Returns whether the tiers have all of the object.
  bool redirty_in_tiers(ObjectIndex object);

  // Whether the object has anything that only the store can take over.
  static bool needs_store(const Object& object);
  // Nothing is to be done for the object until somebody closes it, drains, or needs room; each of
  // them wakes the scheduler.
  static bool waits_for_event(const Object& object);
  // So much of it is dirty that it is due whatever its age.
  bool is_large(const Object& object) const;
  // The file's next turn follows at once.
  bool has_much_left(const StoreFile& file) const;

  // Stores a turn of the file. Returns the bytes stored.
  std::uint64_t flush_turn(Actor& actor, const StoreFilePtr& file);
  // Stores one object now, in the calling thread. Returns 0 or -errno.
  int flush_now(ObjectIndex object, bool durable);
  // The same, but it waits until then for a descriptor that is on its way.
  int flush_now(ObjectIndex object, bool durable, std::int64_t deadline_ns);
  static constexpr std::int64_t kArrivalNs = kNanosPerSecond;

  // The descriptor, if nobody needs it, and the record of a file that is gone.
  void drop(const StoreFilePtr& file);
  // Throws away what deleted files have in the tiers that nobody has open any more.
  void discard_deleted();
  // Lets go of the descriptors of deleted files. May wait for the store. Calls wait for each other:
  // after one the room is free.
  void release_deleted();

 private:
  Fate file_synced(const StoreFile& file, const SyncAnswer& answer) override;
  void store_sync_failed(StoreId store, int error) override;
  Fate store_again(const ClosedFile& file) override;
  bool discard_if_gone(Actor& actor, const StoreFile& file) const;
  // flush_object(); on a full store with the room first that deleted files still take.
  FlushResult flush(Actor& actor, const FlushRequest& request);
  FlushResult flush_and_send(Actor& actor, StoreFile& file, FlushRequest request);
  // `mark`: of what is to be durable; null: nothing.
  int store_now(ObjectIndex index, const StoreFilePtr& file, LogMark* mark);
  // After a failure: what the tiers have of the file is dirty again. `fd`: of the file, or -1.
  Fate restore(const ClosedFile& file, int fd);
  ClosedFile left_file(ObjectIndex object) const;
  bool redirty_in_tiers(const ClosedFile& file);
  enum class Redirtied : std::uint8_t {
    kUnreachable,  // nobody may open it for writing, or it is not found
    kChanged,      // another program has changed it since: its bytes are not overwritten
    kPart,
    kAll
  };
  Redirtied redirty(const ClosedFile& file, int fd);
  // Nobody has looked since a failure of its store whether that was this file's. Returns its
  // descriptor where something of it is to be stored again.
  StoreFilePtr settle_doubt(ObjectIndex index);
  // 0 or -errno: what was stored before is then dirty again.
  int send(StoreFile& file);
  // The last error was one of those after which the file may have to be opened again.
  void renew_if_forgotten(StoreFile& file) const;
  void note_losses(StoreFile& file, std::vector<LostRange> lost);
  void note_failure(StoreFile& file, Object& object, int error);
  void note_success(StoreFile& file, Object& object);

  const NodeMemory& memory_;
  StoreFiles& files_;
  const Owner self_;
  const FlushOptions options_;
  const Log log_;
  LoggedFiles* logged_ = nullptr;  // null: the node has no durable log
  std::mutex release_mutex_;
};

}  // namespace cairn::node
