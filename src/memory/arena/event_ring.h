// SPDX-License-Identifier: Apache-2.0
// What the threads of one process have accessed, for the service to learn from: a ring that is
// overwritten when nobody reads it fast enough. Lossy by design: whatever is lost costs speed later
// on, never data.
//
// The writer takes a place, marks its entry as unfinished, writes it and then its tag; the reader
// copies an entry and believes the copy when the tag was the expected one before and after
// (H.-J. Boehm, "Can seqlocks get along with programming language memory models?", MSPC 2012). An
// entry that a process died over keeps its old tag and counts as lost.
//
// A writer that is put off the processor while the others go once around the ring writes into an
// entry that is not its own any more, whose tag may be whole. So each entry has a check over its
// place and all of it, too: a mixture of two events has another one, but for one in 2^31.
//
// Thread safety: put() from the threads of one process, read() from one thread of the service.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/cycle_clock.h"
#include "base/ids.h"
#include "memory/arena/owner.h"

namespace cairn {

enum class AccessKind : std::uint8_t {
  kNone = 0,
  kOpen,
  kClose,
  // A read, named after the slowest of its parts:
  kMiss,      // it was in no tier
  kLate,      // it was being fetched ahead, and had to be waited for
  kBelow,     // it was in a file tier
  kFirstUse,  // it had been fetched ahead, and was now used for the first time
  kHit,       // it was in RAM. Clients report a sample of the plain hits inside a block
  kWrite,
  kAdvice,  // posix_fadvise() and readahead(): `advice` says what
  // fsync() and its relatives, when they are done; `length` is microseconds
  kSync,
  // A sum over calls of one thread on one file (memory/tiers/wait_sums.h): `length` is the bytes
  // that it wrote, `offset` the times that it waited.
  kWaited,
};

struct AccessEvent {
  std::uint64_t offset = 0;
  std::uint64_t cycles = 0;  // cycle_count() when the call began
  ObjectIndex object = ObjectIndex::kNone;
  std::uint32_t length = 0;  // UINT32_MAX: to the end
  DescriptionIndex stream = DescriptionIndex::kNone;
  std::int32_t descriptor = -1;  // a descriptor of the file in the process
  Owner owner;                   // who tells it
  AccessKind kind = AccessKind::kNone;
  std::uint8_t advice = 0;
  // of an open, a close or an advice: the service has to do something about it
  bool is_urgent = false;
};

class EventRing {
 public:
  static constexpr std::uint32_t kEntries = 2048;
  static_assert((kEntries & (kEntries - 1)) == 0, "places go on where 32 bits end");
  static constexpr std::uint32_t kHalf = kEntries / 2;

  // Returns whether the reader is to be woken for it: something is to be done about it at once, or
  // it fills one half of the ring. The first event of a process wakes nobody: a short program that
  // reads a small file does not pay for a thread of the service.
  bool put(const AccessEvent& event) {
    const std::uint32_t place = head_.fetch_add(1, std::memory_order_acq_rel);
    Entry& entry = entries_[place % kEntries];
    // In this order: a fence would do for all, but the thread sanitizer does not model fences.
    entry.tag.store(0, std::memory_order_relaxed);
    entry.offset.store(event.offset, std::memory_order_release);
    entry.cycles.store(event.cycles, std::memory_order_release);
    entry.object.store(raw(event.object), std::memory_order_release);
    entry.length.store(event.length, std::memory_order_release);
    entry.stream.store(raw(event.stream), std::memory_order_release);
    entry.descriptor.store(event.descriptor, std::memory_order_release);
    entry.owner.store(event.owner.bits(), std::memory_order_release);
    entry.check.store(check_of(place, event), std::memory_order_release);
    entry.tag.store(tag_of(place, event), std::memory_order_release);
    return is_urgent(event) || place % kHalf == kHalf - 1;
  }

  std::uint32_t head() const { return head_.load(std::memory_order_acquire); }

  enum class Got : std::uint8_t { kEvent, kUnfinished, kLost };
  // The event at `place`, one below head().
  Got read(std::uint32_t place, AccessEvent* event) const {
    const Entry& entry = entries_[place % kEntries];
    const std::uint64_t before = entry.tag.load(std::memory_order_acquire);
    if (before >> 16 != sequence_of(place)) {
      // What stands there is of an earlier round, or being written; or of a later one.
      return head() - place > kEntries ? Got::kLost : Got::kUnfinished;
    }
    event->offset = entry.offset.load(std::memory_order_acquire);
    event->cycles = entry.cycles.load(std::memory_order_acquire);
    event->object = static_cast<ObjectIndex>(entry.object.load(std::memory_order_acquire));
    event->length = entry.length.load(std::memory_order_acquire);
    event->stream = static_cast<DescriptionIndex>(entry.stream.load(std::memory_order_acquire));
    event->descriptor = entry.descriptor.load(std::memory_order_acquire);
    event->owner = Owner::from_bits(entry.owner.load(std::memory_order_acquire));
    event->kind = static_cast<AccessKind>(before & 0xff);
    event->advice = static_cast<std::uint8_t>(before >> 8 & 0xff);
    const bool is_whole = entry.check.load(std::memory_order_acquire) == check_of(place, *event);
    return is_whole && entry.tag.load(std::memory_order_relaxed) == before ? Got::kEvent
                                                                           : Got::kLost;
  }

  // Calls of this process that wait for the backing store right now: what is fetched ahead gives
  // way to them.
  std::atomic<std::uint32_t> demands;

 private:
  // |  sequence : 33  | advice : 8 | kind : 8 |, 0 while it is being written.
  struct Entry {
    std::atomic<std::uint64_t> tag;
    std::atomic<std::uint64_t> offset;
    std::atomic<std::uint64_t> cycles;
    std::atomic<std::uint32_t> object;
    std::atomic<std::uint32_t> length;
    std::atomic<std::uint32_t> stream;
    std::atomic<std::int32_t> descriptor;
    std::atomic<std::uint32_t> owner;
    std::atomic<std::uint32_t> check;
  };

  static bool is_urgent(const AccessEvent& event) {
    return (event.kind >= AccessKind::kMiss && event.kind <= AccessKind::kFirstUse) ||
           event.is_urgent;
  }
  static std::uint64_t sequence_of(std::uint32_t place) { return std::uint64_t{place} + 1; }
  static std::uint64_t tag_of(std::uint32_t place, const AccessEvent& event) {
    return sequence_of(place) << 16 | std::uint64_t{event.advice} << 8 |
           static_cast<std::uint8_t>(event.kind);
  }

  // Multiply-shift over the words of the entry, whose products do not wait for each other (M.
  // Dietzfelbinger, "Universal hashing and k-wise independent random variables via integer
  // arithmetic without primes", STACS 1996). The factors are odd and otherwise arbitrary.
  static std::uint32_t check_of(std::uint32_t place, const AccessEvent& event) {
    const auto pair = [](std::uint64_t high, std::uint32_t low) { return high << 32 | low; };
    const std::uint64_t sum =
        sequence_of(place) * 0x9e3779b97f4a7c15 + event.offset * 0xbf58476d1ce4e5b9 +
        event.cycles * 0x94d049bb133111eb +
        pair(raw(event.object), event.length) * 0xd6e8feb86659fd93 +
        pair(raw(event.stream), static_cast<std::uint32_t>(event.descriptor)) * 0xa0761d6478bd642f +
        (tag_of(0, event) ^ std::uint64_t{event.owner.bits()} << 32) * 0xe7037ed1a0b428db;
    return static_cast<std::uint32_t>(sum >> 32);
  }

  std::atomic<std::uint32_t> head_;
  alignas(64) Entry entries_[kEntries];
};
static_assert(sizeof(EventRing) == 64 + 48 * EventRing::kEntries, "entries lie without gaps");

}  // namespace cairn
