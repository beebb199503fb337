// SPDX-License-Identifier: Apache-2.0
#include "service/fetching/stager.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/object_lifecycle.h"
#include "service/organizer/move_batch.h"
#include "service/organizer/uring_writer.h"
#include "service/process/quiet_open.h"
#include "service/process/unique_fd.h"
#include "service/write_back/service_opens.h"

namespace cairn::node {
namespace {

// After so many bytes the stager reports progress, and notices that the caller has given up.
constexpr std::uint64_t kProgressBytes = 32 << 20;

}  // namespace

// One request under way.
class Stager::Staging {
 public:
  Staging(const Stager& stager, const StageRequest& request)
      : stager_(stager),
        memory_(stager.memory_),
        request_(request),
        batch_(stager.memory_, writer_) {
    actor_.memory = &memory_;
    actor_.self = stager.self_;
    actor_.counters = &memory_.slot(actor_.self.slot()).shards[0];
    progress_.files_total = request.paths.size();
  }
  ~Staging() { actor_.drop_leases(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  StageOutcome run(int (Staging::*stage)(ObjectIndex, PosixBacking&)) {
    for (const std::string& path : request_.paths) {
      progress_.file = path;
      if (!tell()) break;
      const int error = with_object(path, stage);
      ++progress_.files_done;
      CAIRN_CHECK(progress_.files_done <= progress_.files_total);
      if (error < 0) {
        outcome_.failures.push_back({path, std::strerror(-error)});
      } else {
        ++outcome_.files;
      }
    }
    outcome_.bytes = progress_.bytes_done - std::min(progress_.bytes_done, outcome_.bytes_no_room);
    return outcome_;
  }

  int read_in(ObjectIndex index, PosixBacking& file) {
    Object& object = actor_.object(index);
    if (object.through.load(std::memory_order_acquire) != 0) return -EBUSY;
    const ObjectHandling handling = handling_of(object);
    object.mark(kMarkHomeRuled, handling.home && !request_.tier);
    object.set_handling(handling);
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL);
    const std::uint64_t size = object.size.load(std::memory_order_acquire);
    const ObjectAccess access{actor_, index, file, nobody_};
    for (std::uint64_t at = 0; at < size; at += kBlockBytes) {
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(size - at, kBlockBytes));
      if (memory_.part_of(object.handling(), block_of(at)).never_buffered) continue;
      const int error = read_block(access, block_of(at), length);
      if (error < 0) return error;
      progress_.bytes_done += length;
      if (at % kProgressBytes == 0 && !tell()) return -EINTR;
    }
    return 0;
  }

  int write_out(ObjectIndex index, PosixBacking& file) {
    const Object& object = actor_.object(index);
    const std::uint64_t resident = std::uint64_t{object.blocks.load()} * kBlockBytes;
    if (const int error = stager_.flusher_.flush_now(index, true); error < 0) return error;
    const ObjectAccess access{actor_, index, file, nobody_};
    // Blocks may have turned dirty since then. drop_blocks() stores them only through a descriptor
    // that may write, and ours may not: they stay, and the reply says so.
    if (object.dirty_blocks.load(std::memory_order_acquire) != 0) return -EBUSY;
    if (const int error = drop_blocks(access, 0, UINT64_MAX, false, PlacementReason::kStagedOut);
        error < 0) {
      return error;
    }
    progress_.bytes_done += std::min(resident, object.size.load());
    return 0;
  }

 private:
  // As an open for reading would have it, but for the tier that was asked for.
  ObjectHandling handling_of(const Object& object) const {
    ObjectHandling handling = handling_for_reader(memory_, stager_.directories_, progress_.file,
                                                  object.size.load(std::memory_order_acquire));
    if (request_.tier) handling.home = request_.tier;
    return handling;
  }

  int with_object(const std::string& path, int (Staging::*stage)(ObjectIndex, PosixBacking&)) {
    const UniqueFd fd = open_quietly(path);
    if (!fd) return -errno;
    StoreStatus status;
    if (const int error = store_status(fd.get(), &status); error < 0) return error;
    PosixBacking file(fd.get(), O_RDONLY);
    // Nobody sets counts right that are ours for now (attachment/audit.h).
    const std::shared_lock staging(stager_.fetches_);
    const ObjectIndex index = open_for_service(actor_, file, status);
    if (index == ObjectIndex::kNone) return -ENOSPC;
    const int error = (this->*stage)(index, file);
    (void)batch_.finish(actor_);
    const int closed = close_for_service(ObjectAccess{actor_, index, file, nobody_});
    return error < 0 ? error : closed;
  }

  int read_block(const ObjectAccess& access, BlockNumber number, std::size_t length) {
    CAIRN_CHECK(length != 0);
    CAIRN_CHECK(length <= kBlockBytes);
    const std::uint16_t wanted = pages_touched(0, length);
    if (bring(memory_.directory().find(access.index, number), wanted)) return 0;
    // The store may be slow, and a program may wait for a block on its way.
    (void)batch_.finish(actor_);
    LockedBlock block = lock_or_place(access, {.number = number,
                                               .end = length,
                                               .reason = PlacementReason::kStaged,
                                               .blocks_wanted = Lease::kSlabsMax});
    if (!block) {
      outcome_.bytes_no_room += length;
      return 0;
    }
    const std::uint16_t valid = block.descriptor().valid_pages();
    if ((valid & wanted) == wanted) return 0;
    // RAM had no room for a larger bucket.
    if (memory_.in_memory(block.bucket()) && length > block.descriptor().bucket_bytes()) {
      outcome_.bytes_no_room += length;
      return 0;
    }
    int error = 0;
    if (memory_.in_memory(block.bucket())) {
      error = fill_and_seal(access, block, number, wanted);
    } else if (valid == 0) {
      error = fill_in_file_tier(access, block, number);
    }
    if (error < 0 && block.descriptor().valid_pages() == 0) discard_unfilled(actor_, block);
    return error;
  }

  // A block that is wholly resident elsewhere comes to the tier that was asked for. False when
  // there is none, or it cannot move now.
  bool bring(BucketIndex bucket, std::uint16_t wanted) {
    if (!request_.tier || bucket == BucketIndex::kNone) return false;
    if ((memory_.block(bucket).valid_pages() & wanted) != wanted) return false;
    if (memory_.tier_of(bucket) == *request_.tier) return true;
    if (!batch_.add(actor_, bucket, *request_.tier, PlacementReason::kStaged)) return false;
    if (batch_.is_full()) (void)batch_.advance(actor_);
    return true;
  }

  bool tell() {
    (void)batch_.finish(actor_);
    if (!outcome_.given_up && request_.progress && !request_.progress(progress_))
      outcome_.given_up = true;
    return !outcome_.given_up;
  }

  const Stager& stager_;
  const NodeMemory& memory_;
  const StageRequest& request_;
  Actor actor_;
  UringWriter writer_;
  MoveBatch batch_;
  NoService nobody_;
  StageProgress progress_;
  StageOutcome outcome_;
};

StageOutcome Stager::stage_in(const StageRequest& request) const {
  return Staging(*this, request).run(&Staging::read_in);
}

StageOutcome Stager::stage_out(const StageRequest& request) const {
  return Staging(*this, request).run(&Staging::write_out);
}

}  // namespace cairn::node
