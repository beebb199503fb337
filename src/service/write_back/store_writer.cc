// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/store_writer.h"

#include <errno.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_lifecycle.h"
#include "service/write_back/write_failures.h"

namespace cairn::node {

static_assert(StoreWriter::kTurnBytes % kBlockBytes == 0);
static_assert(StoreWriter::kUnsentBytesMax <= StoreWriter::kTurnBytes);

namespace {

// Such a file has nothing to wait for.
bool cannot_be_synced(int error) { return error == -EINVAL; }

// Another program has changed the file since the service has last stored something of it.
bool is_changed_outside(const Object& object, const StoreFile& file) {
  if (object.dirty_blocks.load() != 0 || object.has(kObjectTimesDirty)) return false;
  StoreStatus status;
  return store_status(file.fd.get(), &status) != 0 ||
         status.stamp.mtime_ns != object.store_mtime_ns.load() ||
         status.stamp.size != object.store_size.load();
}

}  // namespace

StoreWriter::StoreWriter(const NodeMemory& memory, StoreFiles& files, Owner self,
                         const FlushOptions& options, Log log)
    : memory_(memory), files_(files), self_(self), options_(options), log_(std::move(log)) {
  files_.use_listener(this);
}

void StoreWriter::take_over() {
  const std::uint32_t used = memory_.objects().used();
  for (std::uint32_t index = 1; index < used; ++index) {
    const auto number = static_cast<ObjectIndex>(index);
    Object& object = memory_.objects().at(number);
    if (!object.has(kObjectLive) || !object.is_marked(kMarkKnownElsewhere)) continue;
    if (object.is_in_trouble(kBytesLost)) files_.unsynced().adopt_lost(left_file(number));
    if (!object.is_in_trouble(kSyncUnderWay)) continue;
    (void)store_unheard(number);
    object.note_trouble(kSyncUnderWay, false);
  }
}

// Nobody knows which of its bytes the dead service was about to make durable.
ClosedFile StoreWriter::left_file(ObjectIndex index) const {
  const Object& object = memory_.objects().at(index);
  ClosedFile file{index, object.key(), files_.path_of(index), nullptr, {}};
  file.stored.add(0, object.size.load());
  return file;
}

bool StoreWriter::store_unheard(ObjectIndex index) {
  CAIRN_CHECK(memory_.objects().at(index).is_in_trouble(kSyncUnderWay));
  const ClosedFile file = left_file(index);
  if (redirty(file, -1) == Redirtied::kAll) return true;
  const StoreFilePtr kept = files_.find(index);
  if (kept != nullptr && has_lost_nothing(kept->fd.get())) return true;
  log_("nobody has heard whether the last fsync of " + file.path +
       " has failed, and the tiers do not have all of it");
  return false;
}

bool StoreWriter::waits_for_event(const Object& object) {
  const FlushTrigger trigger = object.handling().trigger;
  if (trigger == FlushTrigger::kOnExit) return true;
  return trigger == FlushTrigger::kPerFile && object.writers.load(std::memory_order_seq_cst) != 0;
}

bool StoreWriter::needs_store(const Object& object) {
  if (object.handling().mode == BufferingMode::kScratch) return false;
  // Without an open descriptor nobody else will settle the times.
  return object.dirty_blocks.load(std::memory_order_acquire) != 0 ||
         (object.opens.load(std::memory_order_acquire) == 0 && object.has(kObjectTimesDirty));
}

bool StoreWriter::is_large(const Object& object) const {
  return std::uint64_t{object.dirty_blocks.load()} * kBlockBytes >= options_.amount_bytes;
}

Actor StoreWriter::make_actor(std::size_t shard) const {
  CAIRN_CHECK(shard < ClientSlot::kShards);
  Actor actor;
  actor.memory = &memory_;
  actor.self = self_;
  actor.counters = &memory_.slot(self_.slot()).shards[shard];
  return actor;
}

void StoreWriter::release_deleted() {
  const std::lock_guard alone(release_mutex_);
  for (const StoreFilePtr& file : files_.snapshot()) {
    if (memory_.objects().at(file->object).has(kObjectUnlinked)) drop(file);
  }
  files_.unsynced().release_deleted();
}

// The names are counted last: once nobody has the file open, nobody can link it again.
bool StoreWriter::discard_if_gone(Actor& actor, const StoreFile& file) const {
  if (!is_abandoned(memory_, file.object)) return false;
  StoreStatus status;
  return store_status(file.fd.get(), &status) == 0 && status.links == 0 &&
         discard_abandoned(actor, file.object);
}

void StoreWriter::discard_deleted() {
  Actor actor = make_actor(0);
  for (const StoreFilePtr& file : files_.snapshot()) {
    if (discard_if_gone(actor, *file)) drop(file);
  }
  actor.drop_leases();
}

void StoreWriter::drop(const StoreFilePtr& file) {
  if (files_.drop_if_idle(file) && memory_.objects().at(file->object).has(kObjectRetired))
    (void)memory_.objects().reclaim(file->object, self_, memory_.owners());
}

void StoreWriter::renew_if_forgotten(StoreFile& file) const {
  const int error = file.error.load();
  if (error != ESTALE && error != ENOTCONN && error != ENODEV && error != EIO) return;
  if (!file.lost.get().empty()) return;  // that was its tier's
  const Object& object = memory_.objects().at(file.object);
  if (!renew_descriptor(file, object.key())) return;
  if (is_doubted(object)) file.is_younger_than_doubt.store(true);
  log_("opened " + path_of_descriptor(file.fd.get()) + " again after: " + std::strerror(error));
}

// Such a file stays in the queue: until the scheduler looked again, every next turn would be
// another run's, whatever the shares.
bool StoreWriter::has_much_left(const StoreFile& file) const {
  const Object& object = memory_.objects().at(file.object);
  return file.failures.load() == 0 && needs_store(object) && !waits_for_event(object) &&
         is_large(object);
}

std::uint64_t StoreWriter::flush_turn(Actor& actor, const StoreFilePtr& file) {
  CAIRN_CHECK(file->queued.load());
  if (discard_if_gone(actor, *file)) return 0;
  renew_if_forgotten(*file);
  Object& object = memory_.objects().at(file->object);
  const std::int64_t began = monotonic_ns();
  const bool only_logged =
      logged_ != nullptr && logged_->prepare_store(file->object, file->fd.get());
  object.mark(kMarkBeingFlushed, true);
  CAIRN_CRASH_POINT("writer.begun");
  FlushRequest request(file->object, file->backing);
  LossCollector losses;
  request.losses = &losses;
  request.witness = logged_;
  request.only_logged = only_logged;
  request.log_comes_first = logged_ != nullptr;
  request.bytes_max = kTurnBytes;
  request.wait_for_others = false;
  request.reason = file->why.load();
  // At the end nobody opens or closes the file any more.
  const bool is_in_use = request.reason != PlacementReason::kDrained;
  const FlushResult result = file->traits.is_sent_early && is_in_use
                                 ? flush_and_send(actor, *file, request)
                                 : flush(actor, request);
  note_losses(*file, losses.take(object.size.load()));
  // What a tier does not give is a failure of the turn in which nothing else is left.
  const bool is_going_on = result.is_of_tier && result.bytes >= kTurnBytes;
  int error = is_going_on ? 0 : result.error;
  if (const int settled = settle_store(actor, file->object, file->backing); error == 0)
    error = settled;
  object.mark(kMarkBeingFlushed, false);
  CAIRN_CRASH_POINT("writer.settled");
  // The last writer may have closed the file meanwhile and left that to us.
  if (object.writers.load(std::memory_order_seq_cst) == 0 && object.has(kObjectTimesDirty)) {
    if (const int settled = settle_store(actor, file->object, file->backing); error == 0)
      error = settled;
  }
  if (result.bytes != 0) file->sync_owed.store(true);
  if (error != 0) {
    note_failure(*file, object, -error);
  } else {
    if (result.blocks_left == 0 && result.bytes < kTurnBytes) file->passed_ns.store(began);
    note_success(*file, object);
  }
  return result.bytes;
}

FlushResult StoreWriter::flush(Actor& actor, const FlushRequest& request) {
  const FlushResult first = flush_object(actor, request);
  if (!lacks_room(first.error)) return first;
  release_deleted();
  FlushResult second = flush_object(actor, request);
  second.bytes += first.bytes;
  return second;
}

// A file system that is a program keeps the data that it receives, and a close or an open for
// reading waits until it has sent all of that on (MooseFS: 4 s): it never receives much at a time.
FlushResult StoreWriter::flush_and_send(Actor& actor, StoreFile& file, FlushRequest request) {
  FlushResult sum;
  const std::uint64_t most = request.bytes_max;
  request.bytes_max = kUnsentBytesMax;
  while (sum.bytes < most) {
    const FlushResult part = flush(actor, request);
    sum.bytes += part.bytes;
    sum.blocks_left = part.blocks_left;
    sum.error = part.error;
    sum.is_of_tier = part.is_of_tier;
    const int sent = part.bytes != 0 ? send(file) : 0;
    if (sent != 0 && (sum.error == 0 || sum.is_of_tier)) {
      sum.error = sent;
      sum.is_of_tier = false;
    }
    const bool is_over = sum.error != 0 && !part.is_of_tier;
    if (is_over || part.bytes < request.bytes_max) break;
  }
  return sum;
}

int StoreWriter::send(StoreFile& file) {
  const int error = files_.unsynced().sync_file(file, SyncDepth::kData);
  return cannot_be_synced(error) ? 0 : error;
}

void StoreWriter::note_losses(StoreFile& file, std::vector<LostRange> lost) {
  const bool is_news = !lost.empty() && file.lost.get().empty();
  if (is_news) {
    log_("a tier does not give all of " + path_of_descriptor(file.fd.get()) + ": not stored are " +
         std::to_string(lost.front().length) + " bytes from " +
         std::to_string(lost.front().offset) + (lost.size() > 1 ? " on, and more" : " on"));
  }
  file.lost.replace(std::move(lost));
}

void StoreWriter::note_failure(StoreFile& file, Object& object, int error) {
  CAIRN_CHECK(error > 0);
  record_store_error(object, error);
  // The file was made immutable since it was written: the next write must fail at once.
  if (error == EPERM) object.set(kObjectGuarded);
  const std::uint32_t failures = file.failures.fetch_add(1) + 1;
  const std::int64_t now = monotonic_ns();
  if (failures == 1) file.failing_since_ns.store(now);
  file.error.store(error);
  file.last_failure_ns.store(now);
  const std::uint64_t pause_ms = std::min<std::uint64_t>(
      std::uint64_t{options_.retry_ms} << std::min(failures - 1, 16u), kRetryMsMax);
  file.not_before_ns.store(now + static_cast<std::int64_t>(pause_ms) * 1'000'000);
  if (failures == 1) {
    log_("cannot store " + path_of_descriptor(file.fd.get()) + ": " + std::strerror(error) +
         "; trying again");
  }
}

void StoreWriter::note_success(StoreFile& file, Object& object) {
  if (file.failures.exchange(0) != 0) {
    object.clear(kObjectFailing);
    file.error.store(0);
    log_("stored " + path_of_descriptor(file.fd.get()) + " after all");
  }
  // A file that is rewritten all the time is written back once per delay, not all the time.
  const bool waits = object.handling().trigger == FlushTrigger::kPeriodic &&
                     object.dirty_blocks.load() != 0 && !is_large(object);
  const std::int64_t pause = waits ? std::int64_t{options_.delay_ms} * 1'000'000 : 0;
  file.not_before_ns.store(pause == 0 ? 0 : monotonic_ns() + pause);
}

Fate StoreWriter::file_synced(const StoreFile& file, const SyncAnswer& answer) {
  const bool is_good = answer.error == 0 || cannot_be_synced(answer.error);
  // The record of a file that was closed long ago may be another file's.
  if (!memory_.objects().at(file.object).is_of(file.key))
    return is_good ? Fate::kSafe : Fate::kLost;
  if (!is_good) {
    const int fd = file.fd.get();
    return restore({file.object, file.key, path_of_descriptor(fd), nullptr, answer.stored}, fd);
  }
  if (logged_ != nullptr && !file.is_younger_than_doubt.load())
    logged_->note_good_sync(file.object, answer.failures_before);
  return Fate::kSafe;
}

Fate StoreWriter::store_again(const ClosedFile& file) {
  const Object& object = memory_.objects().at(file.object);
  if (!object.has(kObjectLive) || !object.is_of(file.key)) return Fate::kLost;
  return restore(file, -1);
}

Fate StoreWriter::restore(const ClosedFile& file, int fd) {
  // 1. Another thread that stores some of the file does not believe its own fsync.
  memory_.objects().at(file.object).note_sync_failure();
  // 2. The log compares its pages with those that were dirty before all of them are.
  const auto dirty_before = logged_ != nullptr ? logged_->dirty_pages(file.object) : LoggedPages();
  // 3. The resident pages turn dirty.
  const Redirtied dirty = redirty(file, fd);
  // No fsync has spoken of this file: it is as doubtful as before.
  if (dirty == Redirtied::kUnreachable && fd < 0) return Fate::kLost;
  // 4. The log keeps what no tier has.
  using OwnSync = LoggedFiles::OwnSync;
  const bool is_dirty = dirty == Redirtied::kPart || dirty == Redirtied::kAll;
  if (logged_ != nullptr) {
    logged_->note_failed_sync(file.object, is_dirty ? OwnSync::kDirtyAgain : OwnSync::kFailed,
                              dirty_before);
  }
  // 5. The next fsync of its descriptor speaks of all that the file has then.
  if (const StoreFilePtr kept = files_.find(file.object)) kept->is_younger_than_doubt.store(false);
  const bool is_safe = dirty == Redirtied::kAll;
  log_("the store has lost something of " + file.path + ": " +
       (is_safe ? "all of it is stored again" : "not all of it can be stored again"));
  return is_safe ? Fate::kDirtyAgain : Fate::kLost;
}

bool StoreWriter::redirty_in_tiers(ObjectIndex index) { return redirty_in_tiers(left_file(index)); }

bool StoreWriter::redirty_in_tiers(const ClosedFile& file) {
  Actor actor = make_actor(0);
  redirty_object(actor, file.object);
  // A flush that began after the first note of the failure may have found nothing dirty.
  memory_.objects().at(file.object).note_sync_failure();
  const bool is_whole = file.stored.in_tiers(memory_, file.object) == StoredRanges::Residency::kAll;
  actor.drop_leases();
  return is_whole;
}

StoreWriter::Redirtied StoreWriter::redirty(const ClosedFile& file, int fd) {
  // 1. The pages can be stored only through a descriptor.
  if (!files_.readmit(file, fd)) return Redirtied::kUnreachable;
  const StoreFilePtr kept = files_.find(file.object);
  Object& object = memory_.objects().at(file.object);
  if (kept == nullptr) return Redirtied::kUnreachable;
  if (is_changed_outside(object, *kept)) return Redirtied::kChanged;
  // 2. They turn dirty.
  const bool is_whole = redirty_in_tiers(file);
  // 3. Until something of it was dirty, its descriptor might have been dropped.
  if (!files_.readmit(file, fd)) return Redirtied::kUnreachable;
  return is_whole ? Redirtied::kAll : Redirtied::kPart;
}

StoreFilePtr StoreWriter::settle_doubt(ObjectIndex index) {
  const Object& object = memory_.objects().at(index);
  CAIRN_CHECK(logged_ != nullptr);
  const int synced = files_.unsynced().sync_closed(index);
  // A description that is younger than the doubt cannot settle it.
  if (synced == -ENODEV || (synced == 0 && is_doubted(object)))
    (void)store_again(
        {index, object.key(), logged_->path_of(index), nullptr, StoredRanges::everything()});
  return files_.find(index);
}

void StoreWriter::store_sync_failed(StoreId store, int error) {
  log_("file system " + std::to_string(major(raw(store))) + ":" +
       std::to_string(minor(raw(store))) +
       " has lost something that it was given: " + std::strerror(-error));
  if (logged_ != nullptr) logged_->doubt(store);
}

int StoreWriter::flush_now(ObjectIndex index, bool durable) {
  return flush_now(index, durable, monotonic_ns() + kArrivalNs);
}

int StoreWriter::flush_now(ObjectIndex index, bool durable, std::int64_t deadline_ns) {
  if (raw(index) == 0 || raw(index) >= memory_.objects().capacity()) return -EINVAL;
  Object& object = memory_.objects().at(index);
  StoreFilePtr file = files_.find(index);
  // The writer's descriptor came over another connection: it may be a moment behind this request.
  while (file == nullptr && needs_store(object) && monotonic_ns() < deadline_ns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    file = files_.find(index);
  }
  if (file == nullptr && needs_store(object)) return -EIO;
  // Without a log nobody has put the mark there but a client that scribbles.
  const bool has_doubt = durable && logged_ != nullptr && is_doubted(object);
  if (has_doubt && (file == nullptr || file->is_younger_than_doubt.load()))
    file = settle_doubt(index);
  LogMark mark;
  // The mark is to speak of what is logged now, too.
  if (logged_ != nullptr && durable && file != nullptr)
    (void)logged_->prepare_store(index, file->fd.get());
  if (logged_ != nullptr && durable) mark = logged_->begin_storing(index);
  int result = 0;
  if (file != nullptr) {
    result = store_now(index, file, durable ? &mark : nullptr);
  } else if (mark.upto != durable::Lsn::kNone) {
    // It is stored, through a descriptor that is gone.
    result = files_.unsynced().sync_closed(index);
    if (result == -ENODEV)
      result = -files_.unsynced().sync_store(static_cast<dev_t>(raw(object.store())));
  } else if (logged_ != nullptr && durable) {
    result = -ENODEV;  // the asking process has the file open, and can do it
  }
  if (logged_ == nullptr || !durable) return result;
  return result == 0 ? logged_->end_storing(index, mark) : result;
}

int StoreWriter::store_now(ObjectIndex index, const StoreFilePtr& file, LogMark* mark) {
  Object& object = memory_.objects().at(index);
  const bool durable = mark != nullptr;
  renew_if_forgotten(*file);
  if (logged_ != nullptr && !durable) (void)logged_->prepare_store(index, file->fd.get());
  Actor actor = make_actor(0);
  const std::uint32_t failures = object.sync_failures.load();
  FlushRequest request(index, file->backing);
  request.witness = logged_;
  request.log_comes_first = logged_ != nullptr;
  LossCollector losses;
  request.losses = &losses;
  int error = flush(actor, request).error;
  note_losses(*file, losses.take(object.size.load()));
  if (const int settled = settle_store(actor, index, file->backing); error == 0) error = settled;
  file->sync_owed.store(true);
  // The fsync pays for what has just been stored, too.
  if (durable) mark->owed = object.store_owed.load();
  if (error == 0 && durable) error = files_.unsynced().sync_file(*file, SyncDepth::kAll);
  // Another thread was told of the failure, perhaps of what this one has stored.
  if (error == 0 && durable && object.sync_failures.load() != failures) error = -EIO;
  if (error < 0) {
    note_failure(*file, object, -error);
  } else {
    note_success(*file, object);
  }
  actor.drop_leases();
  // The caller may be about to run or to lease the file, which the kernel refuses while it is
  // open for writing here.
  constexpr int kTurnsMax = 100;
  for (int turns = 0; file->queued.load() && turns < kTurnsMax; ++turns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  files_.drop_if_only_read(file);
  return error;
}

}  // namespace cairn::node
