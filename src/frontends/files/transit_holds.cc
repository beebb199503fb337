// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/transit_holds.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include <atomic>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/session.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

struct Note {
  HoldIndex hold;
  pid_t child;  // negative: of a child to be, the thread that makes it
};
constinit Note notes[TransitHolds::kNotesMax] = {};  // under ProcessLock::kTransit
constinit std::atomic<unsigned> note_count{0};

DescriptionTable& descriptions() { return Session::instance().memory().descriptions(); }

bool is_in_transit(HoldIndex hold) {
  const DescriptionTable::HoldView seen = descriptions().view(hold);
  return seen.kind == HoldKind::kDescriptionInTransit && seen.owner == Session::instance().self();
}

// Also true once somebody has waited for it. Nothing else can have its number: while it lives it is
// our child, and afterwards only another child of ours is mistaken for it, for as long as that
// lives.
bool has_ended(pid_t child) {
  siginfo_t info{};
  const long error = sys::call(SYS_waitid, P_PID, child, sys::word(&info),
                               WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
  return error == -ECHILD || (error == 0 && info.si_pid == child);
}

bool is_childless() {
  siginfo_t info{};
  return sys::call(SYS_waitid, P_ALL, 0, sys::word(&info), WEXITED | WNOHANG | WNOWAIT | __WALL,
                   0) == -ECHILD;
}

// Drops each note for which keep(note) is false. Requires: ProcessLock::kTransit.
template <typename Keep>
void sift(Keep&& keep) {
  const unsigned count = note_count.load(std::memory_order_relaxed);
  unsigned kept = 0;
  for (unsigned index = 0; index < count; ++index) {
    if (keep(notes[index])) notes[kept++] = notes[index];
  }
  note_count.store(kept, std::memory_order_relaxed);
}

}  // namespace

void close_description(DescriptionIndex index) {
  Session& session = Session::instance();
  OpenDescription& description = descriptions().at(index);
  CAIRN_DCHECK(description.references.load(std::memory_order_relaxed) == 0);
  const auto object = static_cast<ObjectIndex>(description.object.load(std::memory_order_acquire));
  const bool may_write =
      (description.flags.load(std::memory_order_relaxed) & O_ACCMODE) != O_RDONLY;
  descriptions().destroy(index);
  abandon_object(*session.actor_if_any(), object, may_write);
}

void give_back_hold(HoldIndex hold, Owner owner) {
  const DescriptionTable::Released released = descriptions().release(hold, owner);
  CAIRN_DCHECK(released.kind != HoldKind::kThrough);
  if (released.last) close_description(static_cast<DescriptionIndex>(released.index));
}

bool TransitHolds::any() { return note_count.load(std::memory_order_relaxed) != 0; }

void TransitHolds::note(HoldIndex hold, pid_t child) {
  CAIRN_DCHECK(hold != HoldIndex::kNone);
  if (child == 0) return;
  const LocalGuard guard(process_lock(ProcessLock::kTransit));
  const unsigned count = note_count.load(std::memory_order_relaxed);
  for (unsigned index = 0; index < count; ++index) {
    if (notes[index].hold != hold) continue;
    notes[index].child = child;
    return;
  }
  if (count == kNotesMax) return;
  notes[count] = {.hold = hold, .child = child};
  note_count.store(count + 1, std::memory_order_relaxed);
}

pid_t TransitHolds::unborn() { return -sys::gettid(); }

void TransitHolds::name_child(pid_t child) {
  if (!any()) return;
  CAIRN_DCHECK(child != 0);
  const pid_t thread = unborn();
  const LocalGuard guard(process_lock(ProcessLock::kTransit));
  sift([&](Note& note) {
    if (note.child != thread) return true;
    note.child = child;
    if (child < 0 && is_in_transit(note.hold))
      give_back_hold(note.hold, Session::instance().self());
    return child > 0;
  });
}

void TransitHolds::give_up_unborn() {
  if (is_childless()) name_child(-1);
}

void TransitHolds::forget(pid_t child) {
  const LocalGuard guard(process_lock(ProcessLock::kTransit));
  sift([&](const Note& note) { return note.child != child; });
}

void TransitHolds::settle_noted() {
  if (!Session::instance().is_attached() || is_vfork_child()) return;
  const LocalGuard guard(process_lock(ProcessLock::kTransit));
  pid_t asked = 0;
  bool is_gone = false;
  sift([&](const Note& note) {
    if (!is_in_transit(note.hold)) return false;
    if (note.child < 0) return true;
    if (note.child != asked) is_gone = has_ended(note.child);
    asked = note.child;
    if (is_gone && is_in_transit(note.hold)) give_back_hold(note.hold, Session::instance().self());
    return !is_gone;
  });
}

void TransitHolds::forget_all() { note_count.store(0, std::memory_order_relaxed); }

}  // namespace cairn
