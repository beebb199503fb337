// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/kernel_use.h"

#include "base/system_call.h"

namespace cairn {
namespace {

// No look at the store agrees with this one.
constexpr std::int64_t kNeverSeenNs = INT64_MIN;

// Requires: the object's lock. What the kernel's users have written is in the store, and nobody has
// made it safe there: said before the file is buffered again, and the log asked for it.
void end_through(Object& object, std::uint32_t bits) {
  object.note_store_owed();
  object.through.fetch_and(~bits, std::memory_order_seq_cst);
  object.shape_sequence.fetch_add(Object::kThroughEnded, std::memory_order_seq_cst);
}

// Requires: the object's lock.
void end_if_nobody_has_it_open(Object& object) {
  if (object.opens.load(std::memory_order_seq_cst) != 0 || !is_through_abandoned(object)) return;
  // An open that is under way may have looked at the store before the kernel's last user wrote.
  object.store_ctime_ns.store(kNeverSeenNs, std::memory_order_seq_cst);
  end_through(object, ~std::uint32_t{0});
}

}  // namespace

void keep_through_for_good(const ObjectAccess& access) {
  access.object().through.fetch_add(kThroughForGood, std::memory_order_seq_cst);
}

void undo_keeping(const ObjectAccess& access) {
  access.object().through.fetch_sub(kThroughForGood, std::memory_order_seq_cst);
}

int give_offset_to_kernel(const Actor& actor, OpenDescription& description, int fd) {
  // Those who can take the lock read and write under it.
  OwnedGuard guard(description.offset_lock, actor.self, actor.owners());
  if ((description.flags.load() & kOffsetInKernel) != 0) return 0;
  const off_t moved = sys::lseek(fd, static_cast<off_t>(description.offset.load()), SEEK_SET);
  if (moved < 0) return static_cast<int>(moved);
  description.flags.fetch_or(kOffsetInKernel);
  return 0;
}

void abandon_through(Actor& actor, ObjectIndex index) {
  Object& object = actor.object(index);
  OwnedGuard guard(object.lock, actor.self, actor.owners());
  object.through.fetch_or(kThroughAbandoned, std::memory_order_seq_cst);
  object.through.fetch_sub(1, std::memory_order_seq_cst);
  object.shape_sequence.fetch_add(Object::kThroughEnded, std::memory_order_seq_cst);
  // The last closer looks at the mark after it has counted itself out.
  end_if_nobody_has_it_open(object);
}

void end_abandoned_through(const ObjectAccess& access) {
  Object& object = access.object();
  if (!is_through_abandoned(object)) return;
  OwnedGuard guard(object.lock, access.actor.self, access.actor.owners());
  // Another process may have ended it meanwhile and have written: then the store's size is not the
  // file's. A process that cannot look leaves it to the next.
  if (!is_through_abandoned(object) || !adopt_kernel_state(access)) return;
  end_through(object, kThroughAbandoned);
}

void end_suspected_through(const ObjectAccess& access) {
  Object& object = access.object();
  // Each of several counted opens is another opener to the kernel, so only the first one asks. The
  // answer stays true: every later open finds the object, by whatever name.
  if (!is_through_suspected(object) || object.opens.load(std::memory_order_seq_cst) != 1 ||
      access.backing.may_have_other_openers()) {
    return;
  }
  OwnedGuard guard(object.lock, access.actor.self, access.actor.owners());
  if (!is_through_suspected(object) || !adopt_kernel_state(access)) return;
  end_through(object, kThroughSuspected | kThroughAbandoned);
}

void forget_abandoned_through(Actor& actor, ObjectIndex index) {
  Object& object = actor.object(index);
  if (__builtin_expect(!is_through_abandoned(object), 1)) return;
  OwnedGuard guard(object.lock, actor.self, actor.owners());
  end_if_nobody_has_it_open(object);
}

}  // namespace cairn
