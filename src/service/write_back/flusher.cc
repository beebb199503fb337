// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/flusher.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/clock.h"
#include "base/futex.h"
#include "memory/buffer/object_lifecycle.h"

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
// What a drain takes for one age: no periodic flush has come between.
constexpr std::uint32_t kAboutAsOldMs = 5'000;

}  // namespace

Flusher::Flusher(const NodeMemory& memory, StoreFiles& files, Owner self, FlushOptions options,
                 Log log)
    : memory_(memory),
      files_(files),
      options_(options),
      writer_(memory, files, self, options, std::move(log)),
      activity_(memory) {
  // Blocks that the RAM tier cannot hold move down before they are stored.
  for (unsigned tier = 0; tier < memory.tiers_for(BufferingMode::kAsync); ++tier)
    capacity_bytes_ += memory.shape().tier_bytes[tier];
}

Flusher::~Flusher() { stop(); }

void Flusher::start() {
  CAIRN_CHECK(!scheduler_.joinable());
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
    has_changed_ = true;
    urgent_ = urgent_ || urgent;
  }
  changed_.notify_all();
  memory_.flusher_board().bell.ring_anyway();
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
  const auto found = std::find(flusher_.wishes_.begin(), flusher_.wishes_.end(), wish_);
  CAIRN_CHECK(found != flusher_.wishes_.end());
  flusher_.wishes_.erase(found);
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
  std::uint64_t dirty = memory_.flusher_board().dirty_bytes.load(std::memory_order_relaxed);
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
    if (!StoreWriter::needs_store(object)) {
      if (file->traits.lingers) {
        plan.note_resting(file, now_ns);
      } else if (object.opens.load() == 0) {
        // Its descriptor has come after the last flush. Dropped now, or at the next look.
        plan.rested.push_back(file);
        plan.look_again(now_ns + kTickNanos);
      }
      continue;
    }
    const std::int64_t not_before = file->not_before_ns.load();
    if (not_before > now_ns && (file->failures.load() != 0 || !all_due)) {
      if (file->failures.load() == 0) plan.any_dirty = true;
      plan.look_again(not_before);
      continue;
    }
    const std::uint32_t age_ms =
        elapsed_ms(now_ms, object.dirty_since_ms.load(std::memory_order_relaxed));
    // A file without a name is probably a temporary one: it is written only when its room is
    // needed, and dropped as soon as nobody can have it.
    const bool temporary = object.has(kObjectUnlinked);
    const bool abandoned = temporary && is_abandoned(memory_, file->object);
    if (!all_due && !abandoned && StoreWriter::waits_for_event(object)) continue;
    plan.any_dirty = true;
    if (temporary && !abandoned && !all_due) continue;
    if (all_due || abandoned || is_due(object, age_ms))
      plan.due.push_back(Due{age_ms, object.dirty_blocks.load(), file});
  }
  if (files_.unsynced().keeps_any()) plan.look_again(next_release_ns_);
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
  return age_ms >= options_.delay_ms || writer_.is_large(object);
}

// A drain may run out of time. So among files of about one age those with the least left come
// first: then most files are whole when it ends.
void Flusher::order_for_drain(std::vector<Due>& oldest_first) {
  auto begin = oldest_first.begin();
  while (begin != oldest_first.end()) {
    const std::uint32_t oldest_ms = begin->age_ms;
    const auto end = std::find_if(begin, oldest_first.end(), [oldest_ms](const Due& due) {
      return oldest_ms - due.age_ms > kAboutAsOldMs;
    });
    std::sort(begin, end, [](const Due& left, const Due& right) {
      return left.dirty_blocks < right.dirty_blocks;
    });
    begin = end;
  }
}

void Flusher::enqueue(Plan& plan) {
  std::sort(plan.due.begin(), plan.due.end(),
            [](const Due& left, const Due& right) { return left.age_ms > right.age_ms; });
  if (plan.reason == PlacementReason::kDrained) order_for_drain(plan.due);
  plan.any_dirty = plan.any_dirty || !plan.due.empty();
  {
    const std::lock_guard lock(mutex_);
    for (Due& due : plan.due) {
      StoreFilePtr& file = due.file;
      CAIRN_CHECK(!file->queued.load());  // invariant 3
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
  writer_.release_deleted();
  next_release_ns_ = now_ns + kReleaseNanos;
}

void Flusher::schedule() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      has_changed_ = false;
    }
    activity_.look();
    release_in_turn();
    const std::int64_t began = monotonic_ns();
    Plan plan = look();
    for (const StoreFilePtr& file : plan.rested) writer_.drop(file);
    // A program does not run before its last writable descriptor is closed.
    plan.rested.clear();
    const std::int64_t took = monotonic_ns() - began;
    enqueue(plan);
    sleep(plan, took);
  }
}

// `look_ns` is what the last look cost: with very many files it is repeated less often.
void Flusher::sleep(const Plan& plan, std::int64_t look_ns) {
  // Data that waits for an event is no reason to stay awake, but a program that makes more of it
  // would wake this thread for each block.
  const std::uint64_t dirty = memory_.flusher_board().dirty_bytes.load(std::memory_order_relaxed);
  bool busy = plan.any_dirty || dirty != dirty_seen_;
  dirty_seen_ = dirty;
  {
    std::unique_lock lock(mutex_);
    busy = busy || !queue_.empty() || active_ != 0;
    if (busy) {
      const std::chrono::nanoseconds tick(std::max(kTickNanos, 10 * look_ns));
      changed_.wait_for(lock, tick, [this] { return has_changed_ || stopping_; });
      return;
    }
    if (has_changed_ || stopping_) return;
  }
  Bell& bell = memory_.flusher_board().bell;
  const std::uint32_t heard = bell.listen();
  bell.announce();
  Plan again = look();
  again.rested.clear();
  bool sleeps = !again.any_dirty;
  {
    const std::lock_guard lock(mutex_);
    sleeps = sleeps && !has_changed_ && !stopping_;
  }
  if (sleeps) {
    const std::int64_t until_ns = again.next_ns == 0 ? 0 : again.next_ns - monotonic_ns();
    const int timeout_ms =
        again.next_ns == 0
            ? kIdleMs
            : static_cast<int>(std::clamp<std::int64_t>(until_ns / 1'000'000 + 1, 1, kIdleMs));
    bell.wait(heard, timeout_ms);
  }
  bell.retire();
}

// Chooses the least busy of the devices with a free stream, and of the files to be stored there the
// oldest of the run whose turn it is.
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
  CAIRN_CHECK(places.size() == candidates.size());
  const std::size_t best = places[share_.choose(candidates)];
  CAIRN_CHECK(best < queue_.size());
  StoreFilePtr file = std::move(queue_[best]);
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(best));
  // On account: another stream may look before the turn is over.
  const Object& object = memory_.objects().at(file->object);
  const std::uint64_t dirty = std::uint64_t{object.dirty_blocks.load()} * kBlockBytes;
  share_.charge(file->run.load(std::memory_order_relaxed),
                std::min(dirty, StoreWriter::kTurnBytes));
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
  Actor actor = writer_.make_actor(2 + stream % (ClientSlot::kShards - 2));
  std::unique_lock lock(mutex_);
  for (;;) {
    StoreFilePtr file;
    work_.wait(lock, [&] { return stopping_ || (file = take_locked()) != nullptr; });
    if (file == nullptr) break;
    ++writing_[file->device];
    ++active_;
    current_ = file;
    lock.unlock();
    const std::uint64_t stored = writer_.flush_turn(actor, file);
    const bool goes_on = stored != 0 && writer_.has_much_left(*file);
    if (!goes_on) {
      file->rests_since_ns.store(monotonic_ns());
      file->queued.store(false);
      if (!file->traits.lingers) writer_.drop(file);
    }
    lock.lock();
    if (goes_on) queue_.push_back(file);
    share_.note_stored(file->run.load(std::memory_order_relaxed), stored);
    CAIRN_CHECK(active_ != 0);
    CAIRN_CHECK(writing_[file->device] != 0);
    --active_;
    if (--writing_[file->device] == 0) writing_.erase(file->device);
    current_ = nullptr;
    has_changed_ = has_changed_ || queue_.empty();
    changed_.notify_all();
    work_.notify_all();
  }
  lock.unlock();
  actor.drop_leases();
}

}  // namespace cairn::node
