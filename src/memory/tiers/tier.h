// SPDX-License-Identifier: Apache-2.0
// A tier: a place that holds bytes. Everything above asks a tier the same questions, whatever it is
// made of.
//
//   medium   member        where the bytes are
//   memory   MemoryTier    at an address in every process
//   file     FileTier      in a pool file on a local device, read and written with direct I/O
//   either   FaultyTier    another tier that fails as a test says: testing/faulty_tier.h
//
// A TierExtent names bytes of a tier; the pool of the tier says which extent is whose bucket
// (NodeMemory::place_of()). A caller that needs the bytes for a while asks for their address first,
// and copies them if there is none. The read hit asks nobody (memory/buffer/read_hit.h).
//
// A further member (another node's memory, say) derives from Tier, and adds itself to the
// conformance suite in tier_test.cc.
//
// Thread safety: any thread. A tier orders nothing: writers hold the locks of their buckets, and
// readers hold them too or compare the sequences afterwards. Ownership: as the members say.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"

namespace cairn {

struct FailureBoard;

enum class TierOperation : std::uint8_t { kRead, kWrite };
enum class TierMedium : std::uint8_t { kNone, kMemory, kFile };

// Bytes of a tier: those of a bucket, of a part of one, or of buckets that lie side by side.
struct TierExtent {
  std::uint64_t offset = 0;
  std::size_t length = 0;

  std::uint64_t end() const { return offset + length; }
  bool is_whole_pages() const { return length != 0 && (offset | length) % kPageBytes == 0; }
  friend bool operator==(const TierExtent&, const TierExtent&) = default;
};

class Tier {
 public:
  // kNone: the node has no such tier.
  virtual TierMedium medium() const = 0;
  virtual std::uint64_t capacity_bytes() const = 0;
  // Where the bytes lie in this process; null when the medium has no addresses.
  virtual std::byte* address_of(TierExtent extent) const = 0;

  // Whole pages from or to a buffer that is aligned to them. Returns 0 or -errno; a short transfer
  // is -EIO, and a page that is not what was written -EBADMSG; -ETIMEDOUT comes at once from a
  // device that is known to hang. Requires: the extent lies in the tier.
  int read_pages(TierExtent extent, void* out) const;
  int write_pages(TierExtent extent, const void* in) const;
  // For a reader without the lock of the block: -EBADMSG may only say that somebody is writing it.
  int peek_pages(TierExtent extent, void* out) const;
  // The same with the bytes in several places, which together are as long as the extent.
  int read_parts(TierExtent extent, std::span<const iovec> parts) const;
  int write_parts(TierExtent extent, std::span<const iovec> parts) const;
  // read_parts() in two steps, of which another thread may take the second: the bytes, and whether
  // they are what was written, 0 or -EBADMSG. Nobody uses them before that. The caller
  // reads wrong bytes once more, and only that second read counts as a failure.
  int fetch_parts(TierExtent extent, std::span<const iovec> parts) const;
  int check_parts(TierExtent extent, std::span<const iovec> parts) const;

  // For a caller that gives operations to the device itself. `descriptor` is -1 when there is none.
  struct DevicePlace {
    int descriptor = -1;
    std::uint64_t offset = 0;
  };
  virtual DevicePlace on_device(TierExtent extent) const = 0;
  // Such a caller of a file tier says before an operation that these pages will change, and what
  // they are when it has ended.
  virtual void forget_sums(TierExtent) const {}
  virtual void note_sums(TierExtent, std::span<const iovec>) const {}
  // Whether it looks at the bytes of a write once more when the device has them, for their
  // checksums. Then they have to stay as they are until the write returns.
  virtual bool keeps_sums() const { return false; }

  // Where failed operations of this tier are counted from now on.
  struct FailureRecord {
    FailureBoard* board = nullptr;  // null: nowhere
    TierId tier{};
    bool may_lack_room = false;  // that its device has none is no failure
  };
  void count_failures(const FailureRecord& record) { record_ = record; }
  // For a caller that gave an operation to the device itself, or that has read bytes which are not
  // those that were written. Returns `error`, which is 0 or -errno.
  int note_result(TierOperation operation, TierExtent extent, int error) const;
  // For a caller that has waited in vain for a write that it gave to the device. Returns
  // -ETIMEDOUT, as all operations do from now on.
  int note_hang() const;
  // The device does not answer, and is not to be asked.
  bool hangs() const;

 protected:
  ~Tier() = default;
  bool has(TierExtent extent) const { return extent.end() <= capacity_bytes(); }

 private:
  virtual int do_read(TierExtent extent, std::span<const iovec> parts) const = 0;
  virtual int do_write(TierExtent extent, std::span<const iovec> parts) const = 0;
  virtual int do_fetch(TierExtent extent, std::span<const iovec> parts) const {
    return do_read(extent, parts);
  }
  virtual bool do_agree(TierExtent, std::span<const iovec>) const { return true; }

  FailureRecord record_;
};

// An extent together with its tier: where the bytes of a bucket are.
struct TierPlace {
  const Tier* tier = nullptr;
  TierExtent extent;

  std::byte* address() const { return tier->address_of(extent); }
  int read(void* out) const { return tier->read_pages(extent, out); }
  int peek(void* out) const { return tier->peek_pages(extent, out); }
  int write(const void* in) const { return tier->write_pages(extent, in); }
};

// Copies all bytes of one place to another of the same length. Returns 0 or -errno. Requires: at
// least one of the two is in memory.
int copy_place(const TierPlace& from, const TierPlace& to);

}  // namespace cairn
