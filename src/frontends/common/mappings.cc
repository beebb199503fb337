// SPDX-License-Identifier: Apache-2.0
#include "frontends/common/mappings.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "buffer/object_lifecycle.h"

namespace cairn {
namespace {

// Past this many pieces a mapping's through mode lasts until the process ends.
constexpr unsigned kPiecesMax = 16384;

// Pieces of one mapping share a hold.
struct Piece {
  std::uintptr_t begin;
  std::uintptr_t end;
  ObjectIndex object;
  HoldIndex hold;
};
constinit Piece pieces[kPiecesMax] = {};
constinit std::atomic<unsigned> piece_count{0};

void insert(const Piece& piece) {
  const unsigned count = piece_count.load(std::memory_order_relaxed);
  if (count == kPiecesMax) return;
  pieces[count] = piece;
  piece_count.store(count + 1, std::memory_order_release);
}

void erase(unsigned index) {
  const unsigned last = piece_count.load(std::memory_order_relaxed) - 1;
  pieces[index] = pieces[last];
  piece_count.store(last, std::memory_order_release);
}

bool is_held_elsewhere(HoldIndex hold) {
  for (unsigned index = 0; index < piece_count.load(std::memory_order_relaxed); ++index) {
    if (pieces[index].hold == hold) return true;
  }
  return false;
}

void let_go(ObjectIndex object, HoldIndex hold) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return;
  session.memory().descriptions().release(hold, actor->self);
  leave_through(*actor, object);
}

// Takes [begin, end) out of the list. Calls dropped(piece) for each piece that is gone or
// shortened.
void cut(std::uintptr_t begin, std::uintptr_t end) {
  for (unsigned index = 0; index < piece_count.load(std::memory_order_relaxed);) {
    const Piece piece = pieces[index];
    if (piece.end <= begin || piece.begin >= end) {
      ++index;
      continue;
    }
    erase(index);  // the last one takes its place and is looked at next
    if (piece.begin < begin) insert(Piece{piece.begin, begin, piece.object, piece.hold});
    if (piece.end > end) insert(Piece{end, piece.end, piece.object, piece.hold});
    if (!is_held_elsewhere(piece.hold)) let_go(piece.object, piece.hold);
  }
}

std::uintptr_t page_end(std::uintptr_t begin, std::size_t length) {
  constexpr std::uintptr_t kMask = kPageBytes - 1;
  return (begin + length + kMask) & ~kMask;
}

}  // namespace

bool Mappings::any() { return piece_count.load(std::memory_order_relaxed) != 0; }

int Mappings::prepare(OpenFile& file, HoldIndex* hold) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  *hold = HoldIndex::kNone;
  if (actor == nullptr) return 0;
  const int error = enter_through(access_of(*actor, file));
  if (error < 0) return error;
  *hold = session.memory().descriptions().hold_through(file.object, actor->self);
  if (*hold != HoldIndex::kNone) return 0;
  leave_through(*actor, file.object);
  return -ENOMEM;
}

void Mappings::cancel(OpenFile& file, HoldIndex hold) {
  if (hold != HoldIndex::kNone) let_go(file.object, hold);
}

void Mappings::add(std::uintptr_t begin, std::size_t length, ObjectIndex object, HoldIndex hold) {
  if (hold == HoldIndex::kNone) return;
  LocalGuard guard(process_lock(ProcessLock::kMappings));
  insert(Piece{begin, page_end(begin, length), object, hold});
}

void Mappings::remove(std::uintptr_t begin, std::size_t length) {
  if (!any()) return;
  LocalGuard guard(process_lock(ProcessLock::kMappings));
  cut(begin, page_end(begin, length));
}

void Mappings::move(std::uintptr_t from, std::size_t from_length, std::uintptr_t to,
                    std::size_t to_length) {
  if (!any()) return;
  LocalGuard guard(process_lock(ProcessLock::kMappings));
  for (unsigned index = 0; index < piece_count.load(std::memory_order_relaxed); ++index) {
    if (from < pieces[index].begin || from >= pieces[index].end) continue;
    const Piece moved{to, page_end(to, to_length), pieces[index].object, pieces[index].hold};
    // Inserted first, so that its hold is never without a piece in between. Length 0 makes a second
    // mapping.
    insert(moved);
    const unsigned newest = piece_count.load(std::memory_order_relaxed) - 1;
    if (from_length != 0) {
      const Piece kept = pieces[newest];
      pieces[newest].begin = pieces[newest].end = 0;  // out of the way of the cut
      cut(from, page_end(from, from_length));
      for (unsigned other = 0; other < piece_count.load(std::memory_order_relaxed); ++other) {
        if (pieces[other].end == 0 && pieces[other].hold == kept.hold) pieces[other] = kept;
      }
    }
    return;
  }
}

void Mappings::count_again() {
  if (!any()) return;
  Session& session = Session::instance();
  DescriptionTable& descriptions = session.memory().descriptions();
  const Owner self = session.self();
  for (unsigned index = 0; index < piece_count.load(std::memory_order_relaxed); ++index) {
    const HoldIndex old = pieces[index].hold;
    if (descriptions.view(old).owner == self) continue;
    // Counted directly: the parent's mapping keeps the file in through mode at this moment.
    session.memory()
        .objects()
        .at(pieces[index].object)
        .through.fetch_add(1, std::memory_order_seq_cst);
    const HoldIndex hold = descriptions.hold_through(pieces[index].object, self);
    for (unsigned other = index; other < piece_count.load(std::memory_order_relaxed); ++other) {
      if (pieces[other].hold == old) pieces[other].hold = hold;
    }
  }
}

}  // namespace cairn
