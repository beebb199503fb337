// SPDX-License-Identifier: Apache-2.0
#include "memory/flush/flush_object.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "base/crash_point.h"
#include "base/io_parts.h"
#include "base/signal_gate.h"
#include "base/system_call.h"
#include "memory/catalog/flush_lookup.h"
#include "memory/flush/unfinished_time.h"

namespace cairn {
namespace {

constexpr unsigned kBlocksPerBatch = 256;  // 16 MiB: large enough for any device to stream
// A write holds the kernel's lock of the file until the device has taken it, if the device's share
// of dirty pages is used up. A writer of the file must not wait that long to close it, and on a
// network file system to open it.
constexpr unsigned kBlocksPerSharedBatch = 16;
constexpr unsigned kRunsPerBlock = kPagesPerBlock / 2;
static_assert(kBlocksPerSharedBatch <= kBlocksPerBatch);
// blocks of file tiers pass through this many staging buffers
constexpr unsigned kStagedBlocksMax = 16;
static_assert(kStagedBlocksMax <= kBlocksPerBatch);

struct Claim {
  ClaimedBlock block;  // with the dirty pages that this flush writes
  BlockNumber number{};
  std::byte* bytes = nullptr;  // bucket memory, or the staged copy of a file tier's bucket
};

[[maybe_unused]] std::uint64_t bytes_in_parts(std::span<const iovec> parts) {
  std::uint64_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

enum class ClaimOutcome : std::uint8_t { kClaimed, kClean, kBusy, kUnreadable, kFailed };

// One pass over an object. Keeps the claimed blocks of the batch under way.
class Pass {
 public:
  Pass(Actor& actor, const FlushRequest& request) : actor_(actor), request_(request) {}
  ~Pass() {
    CAIRN_DCHECK(claim_count_ == 0);
    if (staging_ != nullptr) sys::munmap(staging_, kStagedBlocksMax * kBlockBytes);
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  FlushResult run() {
    const Object& object = actor_.object(request_.object);
    const std::uint32_t first =
        std::max(raw(block_of(request_.begin)), object.dirty_low.load(std::memory_order_acquire));
    const std::uint64_t last_byte = request_.end == 0 ? 0 : request_.end - 1;
    const std::uint64_t wanted_end =
        std::min<std::uint64_t>(last_byte >> kBlockShift, UINT32_MAX - 1) + 1;
    const std::uint32_t end = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(wanted_end, object.dirty_high.load(std::memory_order_acquire)));
    if (object.dirty_blocks.load(std::memory_order_acquire) == 0 || first >= end) return result_;
    if (end - first <= 4 * actor_.memory->bucket_count()) {
      for (std::uint32_t number = first; number < end && !is_done(); ++number) visit(number);
    } else {
      visit_by_map(first, end);
      if (request_.wait_for_others && object.dirty_blocks.load(std::memory_order_acquire) != 0)
        visit_by_directory(first, end);
    }
    write_batch();
    if (has_unreadable_ && result_.error == 0) {
      result_.error = -EIO;
      result_.is_of_tier = true;
    }
    return result_;
  }

 private:
  bool is_done() const {
    return result_.error != 0 || result_.bytes + batch_bytes_ >= request_.bytes_max;
  }

  // A sparse file may span more block numbers than there are buckets: then the map of dirty buckets
  // is shorter. A block that moves may slip from a part of the map that is still to be looked at to
  // one that has been, so a caller that must miss none also goes through the directory.
  void visit_by_map(std::uint32_t first, std::uint32_t end) {
    constexpr std::size_t kRound = 512;
    std::array<std::uint32_t, kRound> heap;
    std::uint64_t from = first;
    while (!is_done()) {
      std::size_t count = 0;
      actor_.memory->for_each_maybe_dirty([&](BucketIndex bucket) {
        const BlockDescriptor& block = actor_.memory->block(bucket);
        const std::uint32_t number = raw(block.block_number());
        if (block.object_index() != request_.object || number < from || number >= end) return;
        if (count == kRound) {
          if (number >= heap[0]) return;
          std::pop_heap(heap.begin(), heap.begin() + count--);
        }
        heap[count++] = number;
        std::push_heap(heap.begin(), heap.begin() + count);
      });
      if (count == 0) return;
      std::sort_heap(heap.begin(), heap.begin() + count);
      for (std::size_t at = 0; at < count && !is_done(); ++at) visit(heap[at]);
      from = std::uint64_t{heap[count - 1]} + 1;
      if (count < kRound) return;
    }
  }

  void visit_by_directory(std::uint32_t first, std::uint32_t end) {
    actor_.memory->directory().for_each_block([&](ObjectIndex object, BlockNumber number) {
      if (object == request_.object && raw(number) >= first && raw(number) < end && !is_done())
        visit(raw(number));
    });
  }

  unsigned batch_blocks() const {
    const Object& object = actor_.object(request_.object);
    const bool is_shared = object.writers.load() != 0 || object.has(kObjectRemote);
    return is_shared ? kBlocksPerSharedBatch : kBlocksPerBatch;
  }

  void visit(std::uint32_t number) {
    Claim claim;
    claim.number = static_cast<BlockNumber>(number);
    const ClaimOutcome outcome = claim_block(&claim);
    if (outcome == ClaimOutcome::kBusy) ++result_.blocks_left;
    if (outcome != ClaimOutcome::kClean) result_.has_found = true;
    if (outcome != ClaimOutcome::kClaimed) return;
    batch_bytes_ += static_cast<unsigned>(__builtin_popcount(claim.block.pages())) * kPageBytes;
    CAIRN_DCHECK(claim_count_ < kBlocksPerBatch && claim.bytes != nullptr);
    claims_[claim_count_++] = static_cast<Claim&&>(claim);
    if (claim_count_ >= batch_blocks() || staged_count_ == kStagedBlocksMax) write_batch();
  }

  ClaimOutcome claim_block(Claim* claim) {
    const BlockWorker worker = actor_.worker();
    for (;;) {
      LockedBlock block = lock_unless_clean(worker, request_.object, claim->number);
      if (!block) return ClaimOutcome::kClean;
      const BlockDescriptor& descriptor = block.descriptor();
      const ClaimOutcome outcome = claim_locked(static_cast<LockedBlock&&>(block), claim);
      if (outcome != ClaimOutcome::kBusy || !request_.wait_for_others) return outcome;
      // The other flusher may wait for blocks of our batch: write ours out first.
      write_batch();
      descriptor.wait_for_claimant(actor_.owners());
      if (result_.error != 0) return ClaimOutcome::kFailed;
    }
  }

  // How much of the block is inside the file.
  std::size_t bytes_inside(BlockNumber number) const {
    const std::uint64_t size = actor_.object(request_.object).size.load(std::memory_order_acquire);
    const std::uint64_t start = offset_of(number);
    return size <= start ? 0 : std::min<std::uint64_t>(size - start, kBlockBytes);
  }

  ClaimOutcome claim_locked(LockedBlock block, Claim* claim) {
    const std::uint16_t dirty = block.descriptor().dirty_pages();
    if (dirty == 0) return ClaimOutcome::kClean;
    if (block.is_claimed()) return ClaimOutcome::kBusy;
    const std::size_t inside = bytes_inside(claim->number);
    const auto pages =
        static_cast<std::uint16_t>(inside == 0 ? 0 : dirty & pages_touched(0, inside));
    if (pages == 0) {
      discard_past_end(block);
      return ClaimOutcome::kClean;
    }
    claim->block = static_cast<LockedBlock&&>(block).begin_flush(pages);
    CAIRN_CRASH_POINT("flush.claimed");
    // Not under the block's lock: the log takes that while it holds its own.
    if (request_.only_logged && !is_logged(*claim)) {
      complete(*claim, false);
      return ClaimOutcome::kBusy;
    }
    const int error = locate_bytes(claim);
    if (claim->bytes == nullptr) {
      result_.error = error;
      complete(*claim, false);
      return ClaimOutcome::kFailed;
    }
    if (error == 0 || reads_page_by_page(claim)) return ClaimOutcome::kClaimed;
    --staged_count_;
    complete(*claim, false);
    return ClaimOutcome::kUnreadable;
  }

  // The tier has not given the block as a whole: the pages that it gives one by one are flushed.
  // Returns whether there are any.
  bool reads_page_by_page(Claim* claim) {
    const NodeMemory& memory = *actor_.memory;
    const BucketIndex bucket = claim->block.bucket();
    const std::uint16_t wanted = claim->block.pages();
    std::uint16_t readable = 0;
    for (unsigned page = 0; page < kPagesPerBlock; ++page) {
      const auto bit = static_cast<std::uint16_t>(1U << page);
      const std::size_t begin = page * kPageBytes;
      if ((wanted & bit) != 0 &&
          memory.place_of(bucket, begin, kPageBytes).read(claim->bytes + begin) == 0)
        readable |= bit;
    }
    if (readable == wanted) return true;
    has_unreadable_ = true;
    if (request_.losses != nullptr) {
      request_.losses->note_unreadable(request_.object, claim->number,
                                       static_cast<std::uint16_t>(wanted & ~readable));
    }
    if (readable == 0) return false;
    ++result_.blocks_left;
    claim->block.narrow(readable);
    return true;
  }

  // Dirty pages past the end of the file belong to a truncation: one at work drops them itself, one
  // that died in the middle leaves them to us.
  void discard_past_end(LockedBlock& block) {
    Object& object = actor_.object(request_.object);
    if (!object.lock.try_lock(actor_.self)) return;
    if (UnclaimedBlock unclaimed(block); unclaimed)
      unclaimed.cut(static_cast<std::uint16_t>(~unclaimed.descriptor().dirty_pages()));
    object.lock.unlock(actor_.self);
  }

  int locate_bytes(Claim* claim) {
    const NodeMemory& memory = *actor_.memory;
    const TierPlace place = memory.place_of(claim->block.bucket());
    claim->bytes = place.address();
    if (claim->bytes != nullptr) return 0;
    if (staging_ == nullptr) {
      void* mapped = sys::mmap(nullptr, kStagedBlocksMax * kBlockBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (sys::is_error(mapped)) return -ENOMEM;
      staging_ = static_cast<std::byte*>(mapped);
    }
    CAIRN_DCHECK(staged_count_ < kStagedBlocksMax);
    claim->bytes = staging_ + kBlockBytes * staged_count_++;
    return place.read(claim->bytes);
  }

  // Writes the claimed blocks in runs of adjacent bytes, one call each, and settles every claim.
  void write_batch() {
    if (claim_count_ == 0) return;
    if (request_.log_comes_first) log_batch();
    const std::uint64_t size = actor_.object(request_.object).size.load(std::memory_order_acquire);
    std::array<iovec, kBlocksPerBatch + kRunsPerBlock> parts;
    unsigned part_count = 0;
    std::uint64_t run_begin = 0;
    std::uint64_t run_end = 0;
    for (unsigned at = 0; at < claim_count_; ++at) {
      const Claim& claim = claims_[at];
      const std::uint16_t pages = claim.block.pages();
      unsigned page = 0;
      while (page < kPagesPerBlock) {
        if ((pages >> page & 1) == 0) {
          ++page;
          continue;
        }
        unsigned past = page;
        while (past < kPagesPerBlock && (pages >> past & 1) != 0) ++past;
        const std::uint64_t begin = offset_of(claim.number) + page * kPageBytes;
        const std::uint64_t end =
            std::min<std::uint64_t>(offset_of(claim.number) + past * kPageBytes, size);
        if (begin < end) {
          if (part_count > 0 && (begin != run_end || part_count >= kBlocksPerBatch)) {
            write_run(std::span(parts.data(), part_count), run_begin, run_end);
            part_count = 0;
          }
          if (part_count == 0) run_begin = begin;
          CAIRN_DCHECK(part_count < parts.size());
          parts[part_count++] = {claim.bytes + page * kPageBytes, end - begin};
          run_end = end;
        }
        page = past;
      }
    }
    CAIRN_CRASH_POINT("flush.writing");
    if (part_count > 0) write_run(std::span(parts.data(), part_count), run_begin, run_end);
    mark_unfinished();
    CAIRN_CRASH_POINT("flush.written");
    // Somebody may have settled the times since we began: the store bears the time of this write
    // now.
    actor_.object(request_.object).set(kObjectTimesDirty);
    note_unlogged();
    // After an error the whole batch stays dirty: what was stored twice is not lost.
    for (unsigned at = 0; at < claim_count_; ++at) complete(claims_[at], result_.error == 0);
    CAIRN_CRASH_POINT("flush.completed");
    claim_count_ = 0;
    staged_count_ = 0;
    batch_bytes_ = 0;
  }

  bool is_logged(const Claim& claim) const {
    return request_.witness->is_logged(request_.object, claim.number, claim.block.bucket(),
                                       claim.block.sequence());
  }

  StoredPages stored_pages(const Claim& claim) const {
    return {claim.number, claim.block.pages(), claim.bytes, bytes_inside(claim.number)};
  }

  bool are_bytes_logged(const Claim& claim) const {
    return request_.witness->has_bytes(request_.object, stored_pages(claim));
  }

  // A program may change them until they are stored: then they are still dirty, and come again.
  void log_batch() {
    for (unsigned at = 0; at < claim_count_; ++at) {
      const Claim& claim = claims_[at];
      if (!is_logged(claim)) request_.witness->log_newer(request_.object, stored_pages(claim));
    }
  }

  // What turns clean now is in the store alone, unless the log has it: an fsync of the file has to
  // see to it.
  void note_unlogged() {
    Object& object = actor_.object(request_.object);
    if (object.durability.load() == Durability::kStore && !object.is_in_log()) return;
    for (unsigned at = 0; at < claim_count_; ++at) {
      const Claim& claim = claims_[at];
      if (request_.witness != nullptr && (is_logged(claim) || are_bytes_logged(claim))) continue;
      object.note_store_owed();
      return;
    }
  }

  void write_run(std::span<iovec> parts, std::uint64_t offset, std::uint64_t end) {
    // Before any of the blocks may turn clean and be evicted: their next reader must look into the
    // store. And only extend_store() may make the file longer.
    // An earlier failure of the batch stays its result.
    const Object& object = actor_.object(request_.object);
    if (result_.error == 0 && end > object.store_size.load(std::memory_order_acquire)) {
      result_.error = extend_store(actor_, request_.object, request_.backing, end);
      CAIRN_CRASH_POINT("flush.extended");
    }
    CAIRN_DCHECK(bytes_in_parts(parts) == end - offset);
    while (!parts.empty() && result_.error == 0) {
      const ssize_t put = request_.backing.write_once(offset, parts);
      if (put <= 0) {
        result_.error = put == 0 ? -EIO : static_cast<int>(put);
        return;
      }
      offset += static_cast<std::uint64_t>(put);
      result_.bytes += static_cast<std::uint64_t>(put);
      parts = parts_after(parts, static_cast<std::size_t>(put));
    }
  }

  // The kernel has just stamped a file that its last writer has closed and that has more to come:
  // its final time may lie in the same second. On a network file system a stamp would wait for the
  // data.
  void mark_unfinished() const {
    Object& object = actor_.object(request_.object);
    if (!is_left_unfinished(object)) return;
    // A cut waits for these blocks with the lock, and takes the store's time for the file's: then
    // the settling at the end of the flush marks the file, if that is not whole by then.
    if (!object.lock.try_lock(actor_.self)) return;
    // A process that may not stamp the file leaves the kernel's time.
    if (is_left_unfinished(object))
      (void)request_.backing.set_mtime(unfinished_time(object.mtime_ns.load()));
    object.lock.unlock(actor_.self);
  }
  bool is_left_unfinished(const Object& object) const {
    const bool goes_on = object.dirty_blocks.load(std::memory_order_acquire) > claim_count_;
    return goes_on && object.writers.load() == 0 && object.takes_blocks() &&
           !object.has(kObjectRemote);
  }

  void complete(Claim& claim, bool stored) {
    const NodeMemory& memory = *actor_.memory;
    if (stored) {
      const auto pages = static_cast<unsigned>(__builtin_popcount(claim.block.pages()));
      memory.journal().note(raw(memory.tier_of(claim.block.bucket())), MoveJournal::kStore,
                            request_.reason, pages * kPageBytes);
    }
    if (!static_cast<ClaimedBlock&&>(claim.block).end_flush(stored)) ++result_.blocks_left;
  }

  Actor& actor_;
  const FlushRequest& request_;
  FlushResult result_;
  std::array<Claim, kBlocksPerBatch> claims_;
  unsigned claim_count_ = 0;
  unsigned staged_count_ = 0;
  std::uint64_t batch_bytes_ = 0;
  std::byte* staging_ = nullptr;
  bool has_unreadable_ = false;
};

// A pass that must miss nothing found nothing, and yet the object counts dirty blocks. Each pass
// sees whatever was dirty before it and still is, so these have come since, behind its back: nobody
// is owed them, and a writer that goes on does not keep anybody here. But to look again costs
// little, and an fsync that returned too early costs somebody's data.
constexpr int kLooksMax = 4;
bool is_to_look_again(const Object& object, const FlushRequest& request,
                      const FlushResult& result) {
  const bool is_whole = request.begin == 0 && request.end == UINT64_MAX;
  return request.wait_for_others && is_whole && !result.has_found && result.error == 0 &&
         object.dirty_blocks.load(std::memory_order_acquire) != 0;
}

}  // namespace

FlushResult flush_object(Actor& actor, const FlushRequest& request) {
  CAIRN_DCHECK(request.begin <= request.end);
  Object& object = actor.object(request.object);
  // From the first byte we write until settle_store(), the store's times are our doing and not the
  // application's.
  if (object.dirty_blocks.load(std::memory_order_acquire) != 0) object.set(kObjectTimesDirty);
  // A block in flight makes others wait as a lock does.
  const SignalGateGuard gate;
  FlushResult result = Pass(actor, request).run();
  for (int look = 1; look < kLooksMax && is_to_look_again(object, request, result); ++look)
    result = Pass(actor, request).run();
  actor.count(Counter::kFlushedBytes, result.bytes);
  return result;
}

}  // namespace cairn
