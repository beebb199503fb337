// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/flusher.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "base/futex.h"
#include "memory/backing/backing_file.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/flush/flush_object.h"

namespace cairn::node {
namespace {

// How often the scheduler looks while there is dirty data that is not due yet.
constexpr std::int64_t kTickNanos = 50'000'000;
// How long a descriptor stays open that is dear to open again.
constexpr std::int64_t kLingerNanos = 2'000'000'000;
// How often it looks whether files are deleted whose descriptors are kept for fsync alone.
constexpr std::int64_t kReleaseNanos = 2'000'000'000;
// An idle node wakes this often; nothing depends on it.
constexpr int kIdleMs = 3'600'000;

// Nothing is to be done for the object until somebody closes it, drains, or needs room; each of
// them wakes the scheduler.
bool waits_for_event(const Object& object) {
  const FlushTrigger trigger = object.handling().trigger;
  if (trigger == FlushTrigger::kOnExit) return true;
  return trigger == FlushTrigger::kPerFile && object.writers.load(std::memory_order_seq_cst) != 0;
}

bool needs_store(const Object& object) {
  if (object.handling().mode == BufferingMode::kScratch) return false;
  // Without an open descriptor nobody else will settle the times.
  return object.dirty_blocks.load(std::memory_order_acquire) != 0 ||
         (object.opens.load(std::memory_order_acquire) == 0 && object.has(kObjectTimesDirty));
}

}  // namespace

Flusher::Flusher(const NodeMemory& memory, StoreFiles& files, Owner self, FlushOptions options,
                 Log log)
    : memory_(memory),
      files_(files),
      self_(self),
      options_(options),
      log_(std::move(log)),
      activity_(memory) {
  // What the RAM tier cannot hold moves down before it is stored.
  for (unsigned tier = 0; tier < memory.tiers_for(BufferingMode::kAsync); ++tier)
    capacity_bytes_ += memory.shape().tier_bytes[tier];
}

Flusher::~Flusher() { stop(); }

void Flusher::start() {
  scheduler_ = std::thread([this] { schedule(); });
  for (unsigned stream = 0; stream < std::max(1u, options_.streams); ++stream) {
    streams_.emplace_back([this, stream] { work(stream); });
  }
}

void Flusher::stop() {
  if (!scheduler_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  kick(false);
  work_.notify_all();
  scheduler_.join();
  for (std::thread& stream : streams_) stream.join();
}

void Flusher::kick(bool urgent) {
  {
    const std::lock_guard lock(mutex_);
    news_ = true;
    urgent_ = urgent_ || urgent;
  }
  changed_.notify_all();
  memory_.header().flusher_wake.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(memory_.header().flusher_wake);
}

bool Flusher::is_wished(const std::vector<Wish>& wishes, const StoreFile& file) {
  return std::any_of(wishes.begin(), wishes.end(), [&file](const Wish& wish) {
    return wish.device == 0 || wish.device == file.device;
  });
}

Flusher::DrainScope::DrainScope(Flusher& flusher, const Wish& wish)
    : flusher_(flusher), wish_(wish) {
  {
    const std::lock_guard lock(flusher_.mutex_);
    flusher_.wishes_.push_back(wish_);
  }
  for (const StoreFilePtr& file : flusher_.files_.snapshot()) {
    if (is_wished({wish_}, *file)) file->not_before_ns.store(0);
  }
  flusher_.kick(false);
}

Flusher::DrainScope::~DrainScope() {
  const std::lock_guard lock(flusher_.mutex_);
  flusher_.wishes_.erase(std::find(flusher_.wishes_.begin(), flusher_.wishes_.end(), wish_));
}

bool Flusher::is_quiet() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && active_ == 0;
}

std::string Flusher::current_path() const {
  StoreFilePtr file;
  {
    const std::lock_guard lock(mutex_);
    file = current_;
  }
  return file == nullptr ? std::string() : path_of_descriptor(file->fd.get());
}

bool Flusher::is_pressed() const {
  std::uint64_t dirty = memory_.header().dirty_bytes.load(std::memory_order_relaxed);
  if (dirty * 100 <= capacity_bytes_ * options_.dirty_high_percent) return false;
  // Scratch data is never clean, and flushing does not help it.
  for (const StoreFilePtr& file : files_.snapshot()) {
    const Object& object = memory_.objects().at(file->object);
    if (object.handling().mode != BufferingMode::kScratch) continue;
    dirty -= std::min(dirty, std::uint64_t{object.dirty_blocks.load()} * kBlockBytes);
  }
  return dirty * 100 > capacity_bytes_ * options_.dirty_high_percent;
}

Flusher::Plan Flusher::look() const {
  Plan plan;
  bool is_urgent = is_pressed();
  std::vector<Wish> wishes;
  {
    const std::lock_guard lock(mutex_);
    wishes = wishes_;
    is_urgent = is_urgent || urgent_;
  }
  const bool drains =
      std::any_of(wishes.begin(), wishes.end(), [](const Wish& wish) { return wish.is_drain; });
  plan.reason = drains      ? PlacementReason::kDrained
                : is_urgent ? PlacementReason::kDemoted
                            : PlacementReason::kDue;
  const std::int64_t now_ns = monotonic_ns();
  const std::uint32_t now_ms = monotonic_coarse_ms();
  for (const StoreFilePtr& file : files_.snapshot()) {
    const Object& object = memory_.objects().at(file->object);
    if (file->queued.load()) continue;
    const bool all_due = is_urgent || is_wished(wishes, *file);
    if (!needs_store(object)) {
      if (file->traits.lingers) plan.note_resting(file, now_ns);
      continue;
    }
    const std::int64_t not_before = file->not_before_ns.load();
    if (not_before > now_ns && (file->failures.load() != 0 || !all_due)) {
      if (file->failures.load() == 0) plan.any_dirty = true;
      plan.look_again(not_before);
      continue;
    }
    const std::uint32_t age_ms = now_ms - object.dirty_since_ms.load(std::memory_order_relaxed);
    // A file without a name is probably a temporary one: it is written only when its room is
    // needed, and dropped as soon as nobody can have it.
    const bool temporary = object.has(kObjectUnlinked);
    const bool abandoned = temporary && is_abandoned(memory_, file->object);
    if (!all_due && !abandoned && waits_for_event(object)) continue;
    plan.any_dirty = true;
    if (temporary && !abandoned && !all_due) continue;
    if (all_due || abandoned || is_due(object, age_ms)) plan.due.emplace_back(age_ms, file);
  }
  if (files_.keeps_closed()) plan.look_again(next_release_ns_);
  return plan;
}

void Flusher::Plan::note_resting(const StoreFilePtr& file, std::int64_t now_ns) {
  const std::int64_t end_ns = file->rests_since_ns.load() + kLingerNanos;
  if (end_ns <= now_ns) {
    rested.push_back(file);
  } else {
    look_again(end_ns);
  }
}

bool Flusher::is_due(const Object& object, std::uint32_t age_ms) const {
  if (object.handling().trigger != FlushTrigger::kPeriodic) return true;
  // Its size and times wait for that, see close_object().
  if (object.has(kObjectRemote) && object.writers.load() == 0) return true;
  return age_ms >= options_.delay_ms || is_large(object);
}

bool Flusher::is_large(const Object& object) const {
  return std::uint64_t{object.dirty_blocks.load()} * kBlockBytes >= options_.amount_bytes;
}

void Flusher::enqueue(Plan& plan) {
  std::sort(plan.due.begin(), plan.due.end(),
            [](const auto& left, const auto& right) { return left.first > right.first; });
  plan.any_dirty = plan.any_dirty || !plan.due.empty();
  {
    const std::lock_guard lock(mutex_);
    for (auto& [age, file] : plan.due) {
      file->queued.store(true);
      file->why.store(plan.reason);
      queue_.push_back(std::move(file));
    }
    urgent_ = false;
  }
  work_.notify_all();
}

// Those that programs delete under Cairn are let go of at once; see StoreFiles::release().
void Flusher::release_in_turn() {
  const std::int64_t now_ns = monotonic_ns();
  if (now_ns < next_release_ns_) return;
  release_deleted();
  next_release_ns_ = now_ns + kReleaseNanos;
}

void Flusher::schedule() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      news_ = false;
    }
    activity_.look();
    release_in_turn();
    const std::int64_t began = monotonic_ns();
    Plan plan = look();
    for (const StoreFilePtr& file : plan.rested) drop(file);
    const std::int64_t took = monotonic_ns() - began;
    enqueue(plan);
    sleep(plan, took);
  }
}

// `look_ns` is what the last look cost: with very many files it is repeated less often.
void Flusher::sleep(const Plan& plan, std::int64_t look_ns) {
  // Data that waits for an event is no reason to stay awake, but whoever makes more of it would
  // wake us for each block.
  const std::uint64_t dirty = memory_.header().dirty_bytes.load(std::memory_order_relaxed);
  bool busy = plan.any_dirty || dirty != dirty_seen_;
  dirty_seen_ = dirty;
  {
    std::unique_lock lock(mutex_);
    busy = busy || !queue_.empty() || active_ != 0;
    if (busy) {
      const std::chrono::nanoseconds tick(std::max(kTickNanos, 10 * look_ns));
      changed_.wait_for(lock, tick, [this] { return news_ || stopping_; });
      return;
    }
    if (news_ || stopping_) return;
  }
  ControlHeader& header = memory_.header();
  const std::uint32_t seen = header.flusher_wake.load(std::memory_order_acquire);
  header.flusher_sleeping.store(1, std::memory_order_seq_cst);
  const Plan again = look();
  bool sleeps = !again.any_dirty;
  {
    const std::lock_guard lock(mutex_);
    sleeps = sleeps && !news_ && !stopping_;
  }
  if (sleeps) {
    const std::int64_t until_ns = again.next_ns == 0 ? 0 : again.next_ns - monotonic_ns();
    const int timeout_ms =
        again.next_ns == 0
            ? kIdleMs
            : static_cast<int>(std::clamp<std::int64_t>(until_ns / 1'000'000 + 1, 1, kIdleMs));
    futex_wait(header.flusher_wake, seen, timeout_ms);
  }
  header.flusher_sleeping.store(0, std::memory_order_seq_cst);
}

// Of the devices with a free stream the least busy; of the files to be stored there the oldest of
// the run whose turn it is.
StoreFilePtr Flusher::take_locked() {
  constexpr std::size_t kLookMax = 256;
  std::vector<std::size_t> places;
  std::vector<FairShare::Candidate> candidates;
  unsigned least_writers = 0;
  for (std::size_t at = 0; at < std::min(queue_.size(), kLookMax); ++at) {
    const StoreFile& file = *queue_[at];
    const auto found = writing_.find(file.device);
    const unsigned writers = found == writing_.end() ? 0 : found->second;
    if (writers != 0 && file.traits.rotational) continue;
    if (places.empty() || writers < least_writers) {
      places.clear();
      candidates.clear();
      least_writers = writers;
    }
    if (writers != least_writers) continue;
    const std::uint32_t run = file.run.load(std::memory_order_relaxed);
    places.push_back(at);
    candidates.push_back(FairShare::Candidate{run, activity_.is_in_io(run)});
  }
  if (places.empty()) return nullptr;
  const std::size_t best = places[share_.choose(candidates)];
  StoreFilePtr file = std::move(queue_[best]);
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(best));
  // On account: another stream may look before the turn is over.
  const Object& object = memory_.objects().at(file->object);
  const std::uint64_t dirty = std::uint64_t{object.dirty_blocks.load()} * kBlockBytes;
  share_.charge(file->run.load(std::memory_order_relaxed), std::min(dirty, kTurnBytes));
  return file;
}

void Flusher::set_weight(std::uint32_t run, std::uint32_t weight) {
  const std::lock_guard lock(mutex_);
  share_.set_weight(run, weight);
}

void Flusher::end_run(std::uint32_t run) {
  const std::lock_guard lock(mutex_);
  share_.forget(run);
}

Flusher::RunShare Flusher::share_of(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  return RunShare{share_.weight_of(run), share_.stored_bytes(run), activity_.is_in_io(run)};
}

void Flusher::work(unsigned stream) {
  // Shards 2 to 7 of the service's slot are the streams'.
  Actor actor = make_actor(2 + stream % (ClientSlot::kShards - 2));
  std::unique_lock lock(mutex_);
  for (;;) {
    StoreFilePtr file;
    work_.wait(lock, [&] { return stopping_ || (file = take_locked()) != nullptr; });
    if (file == nullptr) break;
    ++writing_[file->device];
    ++active_;
    current_ = file;
    lock.unlock();
    const std::uint64_t stored = flush_turn(actor, file);
    const bool goes_on = stored != 0 && has_much_left(*file);
    if (!goes_on) {
      file->rests_since_ns.store(monotonic_ns());
      file->queued.store(false);
      if (!file->traits.lingers) drop(file);
    }
    lock.lock();
    if (goes_on) queue_.push_back(file);
    share_.note_stored(file->run.load(std::memory_order_relaxed), stored);
    --active_;
    if (--writing_[file->device] == 0) writing_.erase(file->device);
    current_ = nullptr;
    news_ = news_ || queue_.empty();
    changed_.notify_all();
    work_.notify_all();
  }
  lock.unlock();
  actor.drop_leases();
}

Actor Flusher::make_actor(std::size_t shard) const {
  Actor actor;
  actor.memory = &memory_;
  actor.self = self_;
  actor.counters = &memory_.slot(self_.slot()).shards[shard];
  return actor;
}

void Flusher::release_deleted() {
  const std::lock_guard alone(release_mutex_);
  for (const StoreFilePtr& file : files_.snapshot()) {
    if (memory_.objects().at(file->object).has(kObjectUnlinked)) drop(file);
  }
  files_.release_deleted();
}

// The names are counted last: once nobody has the file open, nobody can link it again.
bool Flusher::discard_if_gone(Actor& actor, const StoreFile& file) const {
  if (!is_abandoned(memory_, file.object)) return false;
  StoreStatus status;
  return store_status(file.fd.get(), &status) == 0 && status.links == 0 &&
         discard_abandoned(actor, file.object);
}

void Flusher::discard_deleted() {
  Actor actor = make_actor(0);
  for (const StoreFilePtr& file : files_.snapshot()) {
    if (discard_if_gone(actor, *file)) drop(file);
  }
  actor.drop_leases();
}

// The descriptor, if nobody needs it, and the record of a file that is gone.
void Flusher::drop(const StoreFilePtr& file) {
  if (files_.drop_if_idle(file) && memory_.objects().at(file->object).has(kObjectRetired))
    (void)memory_.objects().reclaim(file->object, self_, memory_.owners());
}

// Such a file stays in the queue: until the scheduler looked again, every next turn would be
// another run's, whatever the shares.
bool Flusher::has_much_left(const StoreFile& file) const {
  const Object& object = memory_.objects().at(file.object);
  return file.failures.load() == 0 && needs_store(object) && !waits_for_event(object) &&
         is_large(object);
}

std::uint64_t Flusher::flush_turn(Actor& actor, const StoreFilePtr& file) {
  if (discard_if_gone(actor, *file)) return 0;
  Object& object = memory_.objects().at(file->object);
  const std::int64_t began = monotonic_ns();
  object.mark(kMarkBeingFlushed, true);
  FlushRequest request;
  request.object = file->object;
  request.fd = file->fd.get();
  request.bytes_max = kTurnBytes;
  request.wait_for_others = false;
  request.reason = file->why.load();
  // At the end nobody opens or closes the file any more.
  const bool is_in_use = request.reason != PlacementReason::kDrained;
  const FlushResult result = file->traits.is_sent_early && is_in_use
                                 ? flush_and_send(actor, *file, request)
                                 : flush(actor, request);
  int error = result.error;
  if (const int settled = settle_store(actor, file->object, file->fd.get()); error == 0)
    error = settled;
  object.mark(kMarkBeingFlushed, false);
  // The last writer may have closed the file meanwhile and left that to us.
  if (object.writers.load(std::memory_order_seq_cst) == 0 && object.has(kObjectTimesDirty)) {
    if (const int settled = settle_store(actor, file->object, file->fd.get()); error == 0)
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

FlushResult Flusher::flush(Actor& actor, const FlushRequest& request) {
  const FlushResult first = flush_object(actor, request);
  if (!lacks_room(first.error)) return first;
  release_deleted();
  FlushResult second = flush_object(actor, request);
  second.bytes += first.bytes;
  return second;
}

// A file system that is a program keeps what it is given, and whoever closes the file or opens it
// for reading waits until all of that is sent on (MooseFS: 4 s): it is never given much at a time.
FlushResult Flusher::flush_and_send(Actor& actor, const StoreFile& file, FlushRequest request) {
  FlushResult sum;
  const std::uint64_t most = request.bytes_max;
  request.bytes_max = kUnsentBytesMax;
  while (sum.bytes < most) {
    const FlushResult part = flush(actor, request);
    sum.bytes += part.bytes;
    sum.blocks_left = part.blocks_left;
    sum.error = part.error;
    if (sum.error == 0 && part.bytes != 0) sum.error = send(actor, file);
    if (sum.error != 0 || part.bytes < request.bytes_max) break;
  }
  return sum;
}

int Flusher::send(Actor& actor, const StoreFile& file) {
  // A file that cannot be synchronised has nothing to wait for.
  if (::fdatasync(file.fd.get()) == 0 || errno == EINVAL || errno == EROFS) return 0;
  const int error = -errno;
  redirty_object(actor, file.object);
  return error;
}

void Flusher::note_failure(StoreFile& file, Object& object, int error) {
  record_store_error(object, error);
  // Made immutable since it was written: who writes more is to hear of it at once.
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

void Flusher::note_success(StoreFile& file, Object& object) {
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

int Flusher::flush_now(ObjectIndex index, bool durable) {
  if (raw(index) == 0 || raw(index) >= memory_.objects().capacity()) return -EINVAL;
  Object& object = memory_.objects().at(index);
  StoreFilePtr file = files_.find(index);
  // The writer's descriptor came over another connection: it may be a moment behind this request.
  constexpr int kWaitsMax = 500;
  for (int waits = 0; file == nullptr && needs_store(object) && waits < kWaitsMax; ++waits) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    file = files_.find(index);
  }
  if (file == nullptr) return needs_store(object) ? -EIO : 0;
  Actor actor = make_actor(0);
  // Before the flush: what another thread stores meanwhile is not durable with it.
  const bool was_owed = durable && file->sync_owed.exchange(false);
  FlushRequest request;
  request.object = index;
  request.fd = file->fd.get();
  int error = flush(actor, request).error;
  if (const int settled = settle_store(actor, index, file->fd.get()); error == 0) error = settled;
  if (error == 0 && durable && ::fsync(file->fd.get()) != 0) {
    error = -errno;
    redirty_object(actor, index);
  }
  if (!durable || (error < 0 && was_owed)) file->sync_owed.store(true);
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
