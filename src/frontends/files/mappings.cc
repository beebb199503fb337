// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/mappings.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <span>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/descriptors/twin_descriptor.h"
#include "frontends/files/inherited_through.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

// Past this many pieces a mapping's through mode lasts until the process ends.
constexpr unsigned kPiecesMax = 16384;

struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;

  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
  bool contains(std::uintptr_t at) const { return at >= begin && at < end; }
};

// Pieces of one mapping share a hold. An empty range is nowhere, and its hold lasts.
struct Piece {
  Range range;
  ObjectIndex object;
  HoldIndex hold;
};
constinit Piece pieces[kPiecesMax] = {};
constinit std::atomic<unsigned> piece_count{0};

LocalLock& pieces_lock() { return process_lock(ProcessLock::kMappings); }

std::span<Piece> all() { return {pieces, piece_count.load(std::memory_order_relaxed)}; }

// False when there is no room.
bool insert(const Piece& piece) {
  const unsigned count = piece_count.load(std::memory_order_relaxed);
  CAIRN_DCHECK(piece.range.begin <= piece.range.end);
  if (count == kPiecesMax) return false;
  pieces[count] = piece;
  piece_count.store(count + 1, std::memory_order_release);
  return true;
}

void erase(unsigned index) {
  const unsigned last = piece_count.load(std::memory_order_relaxed) - 1;
  CAIRN_DCHECK(index <= last && last < kPiecesMax);
  pieces[index] = pieces[last];
  piece_count.store(last, std::memory_order_release);
}

bool meets_any(const Range& range) {
  return std::ranges::any_of(all(), [&](const Piece& piece) { return piece.range.meets(range); });
}

bool is_held(HoldIndex hold) {
  return std::ranges::any_of(all(), [&](const Piece& piece) { return piece.hold == hold; });
}

void let_go(ObjectIndex object, HoldIndex hold) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return;
  session.memory().descriptions().release(hold, actor->self);
  leave_through(*actor, object);
}

// Takes `gone` out of the list: the kernel has no mapping of it there any more.
void cut(const Range& gone) {
  CAIRN_DCHECK(gone.begin <= gone.end);
  for (unsigned index = 0; index < piece_count.load(std::memory_order_relaxed);) {
    const Piece piece = pieces[index];
    if (!piece.range.meets(gone)) {
      ++index;
      continue;
    }
    const Range before{piece.range.begin, gone.begin};
    const Range after{gone.end, piece.range.end};
    const bool has_before = before.begin < before.end;
    const bool has_after = after.begin < after.end;
    if (!has_before && !has_after) {
      erase(index);  // the last one takes its place and is looked at next
      if (!is_held(piece.hold)) let_go(piece.object, piece.hold);
      continue;
    }
    pieces[index].range = has_before ? before : after;
    if (has_before && has_after && !insert(Piece{after, piece.object, piece.hold}))
      pieces[index].range = Range{};
    ++index;
  }
}

// The kernel has moved or resized the mapping at `from`, or made a second one of it.
void follow(const Range& from, const Range& to, bool is_second) {
  const auto found = std::ranges::find_if(
      all(), [&](const Piece& piece) { return piece.range.contains(from.begin); });
  if (found == all().end()) return;
  const Piece old = *found;
  Piece moved{to, old.object, old.hold};
  // Nowhere until the cut is over, so that its hold is never without a piece in between.
  const Range place = is_second ? to : Range{};
  if (!insert(Piece{place, moved.object, moved.hold})) {
    found->range = Range{};
    return;
  }
  if (is_second) return;
  cut(from);
  for (Piece& piece : all()) {
    if (piece.hold != moved.hold || piece.range.end != 0) continue;
    piece.range = to;
    return;
  }
}

Range range_of(const void* address, std::size_t length) {
  constexpr std::uintptr_t kMask = kPageBytes - 1;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return Range{begin, (begin + length + kMask) & ~kMask};
}

void* call_kernel(const Mappings::Request& request) {
  return sys::mmap(request.address, request.length, request.protection, request.flags, request.fd,
                   request.offset);
}

void* call_kernel(const Mappings::Move& move) {
  return reinterpret_cast<void*>(
      sys::call(SYS_mremap, sys::word(move.address), static_cast<long>(move.length),
                static_cast<long>(move.new_length), move.flags, sys::word(move.wanted)));
}

// Before the kernel maps the file: 0 or -errno.
int prepare(OpenFile& file, HoldIndex* hold) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  *hold = HoldIndex::kNone;
  if (actor == nullptr) return 0;
  const int error = enter_through(access_of(*actor, file));
  if (error < 0) return error;
  *hold = session.memory().descriptions().hold_through(file.object, actor->self);
  if (*hold != HoldIndex::kNone) return 0;
  // Longer than the mapping, then: for as long as this process and its children live.
  const int answer = session.keep_through(file.private_fd(), protocol::UnservedReason::kTableFull);
  leave_through(*actor, file.object);
  return answer;
}

}  // namespace

bool Mappings::any() { return piece_count.load(std::memory_order_relaxed) != 0; }

void* Mappings::map(const Request& request) {
  // Anywhere else the kernel takes free addresses.
  if ((request.flags & MAP_FIXED) == 0 || !any()) return call_kernel(request);
  const Range range = range_of(request.address, request.length);
  LocalGuard guard(pieces_lock());
  void* result = call_kernel(request);
  if (!sys::is_error(result)) cut(range);
  return result;
}

void* Mappings::map_file(OpenFile& file, Request request) {
  HoldIndex hold = HoldIndex::kNone;
  if (const int error = prepare(file, &hold); error < 0)
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(error));
  {
    // A mapping keeps the description alive, and the locks that belong to it.
    const TwinGuard guard;
    file.is_mapped = true;
    request.fd = file.shared_fd();
  }
  if (hold == HoldIndex::kNone) return map(request);
  LocalGuard guard(pieces_lock());
  void* result = call_kernel(request);
  if (sys::is_error(result)) {
    let_go(file.object, hold);
    return result;
  }
  const Range range = range_of(result, request.length);
  if ((request.flags & MAP_FIXED) != 0) cut(range);
  (void)insert(Piece{range, file.object, hold});
  return result;
}

int Mappings::unmap(void* address, std::size_t length) {
  if (!any()) return sys::munmap(address, length);
  const Range range = range_of(address, length);
  {
    LocalGuard guard(pieces_lock());
    if (meets_any(range)) {
      const int result = sys::munmap(address, length);
      if (result == 0) cut(range);
      return result;
    }
  }
  return sys::munmap(address, length);
}

void* Mappings::remap(const Move& move) {
  if (!any()) return call_kernel(move);
  const Range from = range_of(move.address, move.length);
  const bool is_fixed = (move.flags & MREMAP_FIXED) != 0;
  {
    LocalGuard guard(pieces_lock());
    // A length of 0 stands for the mapping at that address.
    const Range looked_at = move.length == 0 ? range_of(move.address, 1) : from;
    const bool is_ours =
        meets_any(looked_at) || (is_fixed && meets_any(range_of(move.wanted, move.new_length)));
    if (is_ours) {
      void* result = call_kernel(move);
      if (sys::is_error(result)) return result;
      const Range to = range_of(result, move.new_length);
      if (is_fixed) cut(to);
      const bool stays = move.length == 0 || (move.flags & MREMAP_DONTUNMAP) != 0;
      follow(from, to, stays);
      return result;
    }
  }
  return call_kernel(move);
}

void Mappings::count_again() {
  if (!any()) return;
  Session& session = Session::instance();
  DescriptionTable& descriptions = session.memory().descriptions();
  const Owner self = session.self();
  for (unsigned index = 0; index < piece_count.load(std::memory_order_relaxed); ++index) {
    const HoldIndex old = pieces[index].hold;
    if (descriptions.view(old).owner == self) continue;
    const HoldIndex hold = inherit_through(pieces[index].object);
    for (unsigned other = index; other < piece_count.load(std::memory_order_relaxed); ++other) {
      if (pieces[other].hold == old) pieces[other].hold = hold;
    }
  }
}

}  // namespace cairn
