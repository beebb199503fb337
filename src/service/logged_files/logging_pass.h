// SPDX-License-Identifier: Apache-2.0
// One pass over the dirty blocks of a file: what has changed since the log has last had it is
// appended. Neighbouring blocks of which all has changed become one record: recovery looks at each
// record, and a device reads few large ones sooner than many small ones.
//
// Thread safety: the file's lock. Ownership: borrows everything.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "memory/catalog/flush_lookup.h"
#include "memory/flush/flush_object.h"
#include "memory/tiers/node_memory.h"
#include "service/durable_log/durable_log.h"
#include "service/logged_files/logged_file.h"
#include "service/logged_files/page_digest.h"

namespace cairn::node {

// How long a pass waits for a cut of the file to end, and how often it looks.
inline constexpr int kShapeLooksMax = 200;
inline constexpr auto kShapePause = std::chrono::microseconds(50);
// A sparse file has few dirty blocks in a long range of numbers.
inline constexpr std::uint32_t kNumbersToTry = 256;
inline constexpr int kMapLooksMax = 4;
// Blocks in one record. A damaged byte costs the whole record, so there are not more.
inline constexpr std::size_t kRunBlocksMax = 8;

// One pass over the dirty blocks of a file. Requires: the file's lock.
class LoggingPass {
 public:
  // Borrowed. `seed`: of the pages' digests.
  struct Parts {
    const NodeMemory& memory;
    Owner self;
    durable::DurableLog& log;
    std::uint64_t seed;
  };
  LoggingPass(const Parts& parts, ObjectIndex index, LoggedFile& file)
      : with_(parts), index_(index), file_(file), object_(parts.memory.objects().at(index)) {}

  Status run() {
    LogPortion all{.bytes_max = UINT64_MAX};
    return run(&all);
  }
  Status run(LogPortion* portion) {
    portion->is_last = false;
    const std::vector<std::uint32_t> numbers = dirty_numbers();
    for (std::size_t at = 0; at < numbers.size(); ++at) {
      const std::uint32_t number = numbers[at];
      if (number < portion->first) continue;
      if (portion->only_known && !file_.may_have(number)) continue;
      if (logged_bytes_ > portion->bytes_max) {
        portion->first = number;
        return log_run();
      }
      if (at + 1 < numbers.size() && numbers[at + 1] == number + 1) make_run_bytes();
      if (Status status = log_block(number, portion); !status) return status;
    }
    portion->is_last = true;
    Status status = log_run();
    if (status && !portion->only_known) status = log_state();
    if (!status || portion->unreadable == 0) return status;
    return Status::from_errno(-portion->unreadable, "cannot read a block for the log");
  }

  // Pages as they are about to be stored, where the log may have older bytes of their block.
  Status log_stored(const StoredPages& stored) {
    if (!file_.may_have(raw(stored.number))) return Status::ok();
    LoggedBlock& known = file_.blocks[raw(stored.number)];
    const Copy copy{stored.pages, stored.inside, known.bucket, known.sequence};
    for (unsigned page = 0; page < kPagesPerBlock; ++page) {
      const std::size_t begin = page * kPageBytes;
      if ((stored.pages >> page & 1) != 0 && begin < stored.inside)
        std::copy_n(stored.bytes + begin, bytes_of_page(copy, page), bytes_.data() + begin);
    }
    slot_ = bytes_.data();
    const std::uint16_t changed = take_digests(known, copy);
    if (Status status = append_pages(stored.number, copy, changed); !status) return status;
    note_logged(known, copy, changed);
    return Status::ok();
  }

  // The pages of the blocks that the log has which are dirty now.
  LoggedPages dirty_pages() const {
    LoggedPages pages;
    for (const auto& [number, known] : file_.blocks) {
      const BucketIndex bucket =
          with_.memory.directory().find(index_, static_cast<BlockNumber>(number));
      if (bucket != BucketIndex::kNone) pages[number] = with_.memory.block(bucket).dirty_pages();
    }
    return pages;
  }

  // Whether everything that the log has of the file is dirty. The log may let go only of pages that
  // the tiers will store again with the right bytes. A page qualifies if it was dirty before the
  // failure, or if it is dirty now and its bytes are those that were logged. A page that was clean
  // may have been re-read from the store after the loss.
  bool is_all_dirty(const LoggedPages& dirty_before) {
    if (file_.others_upto != durable::Lsn::kNone) return false;
    return std::all_of(file_.blocks.begin(), file_.blocks.end(), [&](const auto& entry) {
      const LoggedBlock& known = entry.second;
      Copy copy;
      if (copy_block(static_cast<BlockNumber>(entry.first), &copy) != 0) return false;
      const auto before = dirty_before.find(entry.first);
      const unsigned was_dirty = before == dirty_before.end() ? 0 : before->second;
      for (unsigned page = 0; page < kPagesPerBlock && page * kPageBytes < copy.inside; ++page) {
        const unsigned bit = 1U << page;
        if ((known.pages & bit) == 0 || (copy.pages & was_dirty & bit) != 0) continue;
        if ((copy.pages & bit) == 0 || digest_of(copy, page) != known.digests[page]) return false;
      }
      return copy.inside != 0 || is_behind_end(entry.first);
    });
  }

  durable::Lsn last() const { return last_; }
  // The file was cut under the pass for too long.
  bool was_disturbed() const { return was_disturbed_; }

 private:
  std::vector<std::uint32_t> dirty_numbers() const {
    std::vector<std::uint32_t> numbers;
    const std::uint32_t low = object_.dirty_low.load(std::memory_order_acquire);
    const std::uint32_t high = object_.dirty_high.load(std::memory_order_acquire);
    if (object_.dirty_blocks.load(std::memory_order_acquire) == 0 || low >= high) return numbers;
    if (high - low <= kNumbersToTry) {
      for (std::uint32_t number = low; number < high; ++number) numbers.push_back(number);
      return numbers;
    }
    // A block that moves may slip from a part of the map that is still to be looked at to one that
    // has been.
    for (int look = 0; look < kMapLooksMax; ++look) {
      const std::uint32_t wanted = object_.dirty_blocks.load(std::memory_order_seq_cst);
      numbers.clear();
      with_.memory.for_each_maybe_dirty([&](BucketIndex bucket) {
        const BlockDescriptor& block = with_.memory.block(bucket);
        if (block.object_index() == index_) numbers.push_back(raw(block.block_number()));
      });
      if (numbers.size() >= wanted) break;
      if (look + 1 == kMapLooksMax) {
        with_.memory.directory().for_each_block([&](ObjectIndex of, BlockNumber number) {
          if (of == index_) numbers.push_back(raw(number));
        });
      }
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }

  // Without the lock: nobody has written to the block since it was logged.
  bool is_unchanged(BlockNumber number) const {
    const auto known = file_.blocks.find(raw(number));
    if (known == file_.blocks.end() || known->second.stale != 0) return false;
    const BlockDescriptor& block = with_.memory.block(known->second.bucket);
    const std::uint64_t word = block.word(std::memory_order_acquire);
    return !BlockDescriptor::is_locked(word) &&
           BlockDescriptor::sequence_in(word) == known->second.sequence &&
           block.holds(index_, number);
  }

  struct Copy {
    std::uint16_t pages = 0;
    std::size_t inside = 0;  // bytes of the block that are inside the file
    BucketIndex bucket{};
    std::uint32_t sequence = 0;
  };

  // Takes the dirty pages of the block, as they are at one moment. 0 or -errno.
  int copy_block(BlockNumber number, Copy* copy) {
    const BlockWorker worker{&with_.memory.catalog(), with_.self};
    LockedBlock block = lock_unless_clean(worker, index_, number);
    if (!block) return 0;
    const std::uint64_t size = object_.size.load(std::memory_order_acquire);
    const std::uint64_t start = offset_of(number);
    copy->inside = size <= start ? 0 : std::min<std::uint64_t>(size - start, kBlockBytes);
    if (copy->inside == 0) return 0;
    copy->pages = static_cast<std::uint16_t>(block.descriptor().dirty_pages() &
                                             pages_touched(0, copy->inside));
    copy->bucket = block.bucket();
    copy->sequence = block.descriptor().sequence();
    if (copy->pages == 0) return 0;
    const TierPlace place = with_.memory.place_of(block.bucket());
    const std::byte* bytes = place.address();
    if (bytes == nullptr) return place.read(slot_) == 0 ? 0 : read_page_by_page(copy);
    for (unsigned page = 0; page < kPagesPerBlock; ++page) {
      if ((copy->pages >> page & 1) != 0)
        std::copy_n(bytes + page * kPageBytes, kPageBytes, slot_ + page * kPageBytes);
    }
    return 0;
  }

  // The tier has not given the block as a whole: the copy has the pages that it gives one by one.
  // Returns -errno of the last of the others.
  int read_page_by_page(Copy* copy) {
    int error = 0;
    for (unsigned page = 0; page < kPagesPerBlock; ++page) {
      const auto bit = static_cast<std::uint16_t>(1U << page);
      if ((copy->pages & bit) == 0) continue;
      const std::size_t begin = page * kPageBytes;
      const TierPlace place = with_.memory.place_of(copy->bucket, begin, kPageBytes);
      const int failed = place.read(slot_ + begin);
      if (failed == 0) continue;
      copy->pages = static_cast<std::uint16_t>(copy->pages & ~bit);
      error = failed;
    }
    return error;
  }

  // The copy is of one shape of the file: a cut is logged after this, or was before. False when the
  // file is being cut for too long.
  bool copy_in_peace(BlockNumber number, Copy* copy, int* error) {
    for (int look = 0; look < kShapeLooksMax; ++look) {
      const std::uint32_t shape = object_.shape_sequence.load(std::memory_order_seq_cst);
      if (!Object::is_odd(shape)) {
        *copy = Copy();
        *error = copy_block(number, copy);
        if (object_.shape_sequence.load(std::memory_order_seq_cst) == shape) return true;
        continue;
      }
      std::this_thread::sleep_for(kShapePause);
    }
    return false;
  }

  Status log_block(std::uint32_t raw_number, LogPortion* portion) {
    const auto number = static_cast<BlockNumber>(raw_number);
    if (is_unchanged(number)) return Status::ok();
    if (!run_.empty() && raw_number != run_first_ + run_.size()) {
      if (Status status = log_run(); !status) return status;
    }
    slot_ = run_bytes_ == nullptr ? bytes_.data() : run_bytes_.get() + run_.size() * kBlockBytes;
    Copy copy;
    int error = 0;
    if (!copy_in_peace(number, &copy, &error)) {
      was_disturbed_ = true;
      return Status::ok();
    }
    // Its tier fails. The log has at least all the others.
    if (error < 0) portion->unreadable = error;
    if (copy.pages == 0) return Status::ok();
    LoggedBlock& known = file_.blocks[raw_number];
    const std::uint16_t changed = take_digests(known, copy);
    known.sequence = copy.sequence - 1;
    if (changed == kAllPages && copy.inside == kBlockBytes && run_bytes_ != nullptr)
      return join_run(raw_number, copy);
    if (Status status = log_run(); !status) return status;
    if (Status status = append_pages(number, copy, changed); !status) return status;
    note_logged(known, copy, changed);
    // A block that lacks a page is looked at again.
    if (error == 0) known.sequence = copy.sequence;
    return Status::ok();
  }

  // Returns: the pages that the log does not have so. Until it has, nothing is known of them.
  std::uint16_t take_digests(LoggedBlock& known, const Copy& copy) const {
    std::uint16_t changed = 0;
    for (unsigned page = 0; page < kPagesPerBlock && page * kPageBytes < copy.inside; ++page) {
      const auto bit = static_cast<std::uint16_t>(1U << page);
      if ((copy.pages & bit) == 0) continue;
      const std::uint64_t digest = digest_of(copy, page);
      if ((known.pages & ~known.stale & bit) != 0 && known.digests[page] == digest) continue;
      known.digests[page] = digest;
      changed |= bit;
    }
    known.pages = static_cast<std::uint16_t>(known.pages & ~changed);
    return changed;
  }

  void note_logged(LoggedBlock& known, const Copy& copy, std::uint16_t changed) const {
    known.pages |= changed;
    known.stale = static_cast<std::uint16_t>(known.stale & ~changed);
    if (changed != 0) known.lsn = file_.upto;
    known.bucket = copy.bucket;
  }

  // Only where blocks follow each other: a small pass needs no memory. Without it, or where the
  // log's segments are small, each block has its own record.
  void make_run_bytes() {
    if (run_bytes_ != nullptr || object_.dirty_blocks.load(std::memory_order_relaxed) < 2) return;
    run_blocks_max_ = std::min(kRunBlocksMax, with_.log.data_bytes_max() / kBlockBytes);
    if (run_blocks_max_ < 2) return;
    run_bytes_.reset(
        static_cast<std::byte*>(std::aligned_alloc(kPageBytes, run_blocks_max_ * kBlockBytes)));
  }

  // The block lies in the run's next slot.
  Status join_run(std::uint32_t number, const Copy& copy) {
    if (run_.empty()) run_first_ = number;
    CAIRN_CHECK(number == run_first_ + run_.size() && run_.size() < run_blocks_max_);
    run_.push_back(copy);
    logged_bytes_ += kBlockBytes;
    return run_.size() == run_blocks_max_ ? log_run() : Status::ok();
  }

  // Nothing is known of its blocks until they are in the log.
  Status log_run() {
    if (run_.empty()) return Status::ok();
    const std::vector<Copy> run = std::exchange(run_, {});
    const std::span<const std::byte> bytes(run_bytes_.get(), run.size() * kBlockBytes);
    const durable::FileState state = state_now();
    const std::uint64_t offset = offset_of(static_cast<BlockNumber>(run_first_));
    const auto lsn = with_.log.append_data(file_.number, {offset, bytes}, state);
    if (!lsn) return lsn.status();
    note(*lsn, state);
    for (std::size_t at = 0; at < run.size(); ++at) {
      LoggedBlock& known = file_.blocks[run_first_ + static_cast<std::uint32_t>(at)];
      note_logged(known, run[at], kAllPages);
      known.sequence = run[at].sequence;
    }
    return Status::ok();
  }

  std::uint64_t digest_of(const Copy& copy, unsigned page) const {
    return page_digest(slot_ + page * kPageBytes, bytes_of_page(copy, page), with_.seed);
  }

  bool is_behind_end(std::uint32_t number) const {
    return offset_of(static_cast<BlockNumber>(number)) >= object_.size.load();
  }

  static std::size_t bytes_of_page(const Copy& copy, unsigned page) {
    return std::min<std::size_t>(kPageBytes, copy.inside - page * kPageBytes);
  }

  Status append_pages(BlockNumber number, const Copy& copy, std::uint16_t changed) {
    for (unsigned page = 0; page < kPagesPerBlock;) {
      if ((changed >> page & 1) == 0) {
        ++page;
        continue;
      }
      unsigned past = page;
      while (past < kPagesPerBlock && (changed >> past & 1) != 0) ++past;
      const std::size_t end = std::min<std::size_t>(past * kPageBytes, copy.inside);
      const std::span<const std::byte> bytes(slot_ + page * kPageBytes, end - page * kPageBytes);
      const durable::FileState state = state_now();
      const auto lsn = with_.log.append_data(file_.number,
                                             {offset_of(number) + page * kPageBytes, bytes}, state);
      if (!lsn) return lsn.status();
      note(*lsn, state);
      logged_bytes_ += bytes.size();
      page = past;
    }
    return Status::ok();
  }

  // Size and time, where no data says them.
  Status log_state() {
    const durable::FileState state = state_now();
    if (state == file_.state) return Status::ok();
    const auto lsn = with_.log.append_size(file_.number, state);
    if (!lsn) return lsn.status();
    note(*lsn, state);
    return Status::ok();
  }

  durable::FileState state_now() const {
    return {object_.size.load(std::memory_order_acquire),
            object_.mtime_ns.load(std::memory_order_acquire)};
  }

  void note(durable::Lsn lsn, const durable::FileState& state) {
    last_ = lsn;
    file_.state = state;
    note_appended(object_, file_, lsn);
  }

  const Parts with_;
  const ObjectIndex index_;
  LoggedFile& file_;
  Object& object_;
  durable::Lsn last_ = durable::Lsn::kNone;
  std::uint64_t logged_bytes_ = 0;
  bool was_disturbed_ = false;
  struct Release {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  // Neighbours from run_first_ on, copied and not appended yet.
  std::vector<Copy> run_;
  std::uint32_t run_first_ = 0;
  std::size_t run_blocks_max_ = 0;
  std::unique_ptr<std::byte, Release> run_bytes_;
  alignas(kPageBytes) std::array<std::byte, kBlockBytes> bytes_;
  std::byte* slot_ = bytes_.data();  // where the block is that is being looked at
};

}  // namespace cairn::node
