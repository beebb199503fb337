// SPDX-License-Identifier: Apache-2.0
#include "frontends/posix/ioctl_table.h"

#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace cairn {
namespace {

// Structures that no header of the kernel's has, or none that is installed everywhere.
struct SpaceReservation {  // struct space_resv: <linux/falloc.h>
  std::int16_t type;
  std::int16_t whence;
  std::int64_t start;
  std::int64_t length;
  std::int32_t system;
  std::uint32_t process;
  std::int32_t padding[4];
};
struct MoveExtent {  // struct move_extent of ext4
  std::uint32_t reserved;
  std::uint32_t donor_fd;
  std::uint64_t origin;
  std::uint64_t donor;
  std::uint64_t length;
  std::uint64_t moved;
};
struct F2fsMoveRange {
  std::uint32_t to_fd;
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t length;
};
struct XfsExchangeRange {
  std::int32_t from_fd;
  std::uint32_t padding;
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t length;
  std::uint64_t flags;
};
struct XfsCommitRange {
  XfsExchangeRange range;
  std::uint64_t freshness[6];
};
struct XfsSwapExtents {
  std::int64_t version;
  std::int64_t to_fd;
  std::int64_t from_fd;
  std::int64_t offset;
  std::int64_t length;
  char padding[16];
  char status[136];
};
struct FuseBackingMap {
  std::int32_t fd;
  std::uint32_t flags;
  std::uint64_t padding;
};

constexpr IoctlRule row(unsigned long request, IoctlEffect effect) {
  return IoctlRule{static_cast<std::uint32_t>(request), effect};
}

// The argument is a descriptor.
constexpr IoctlRule takes(unsigned long request, bool keeps) {
  IoctlRule rule = row(request, IoctlEffect::kAnything);
  rule.descriptors[0] = kIsArgument;
  rule.keeps_descriptor = keeps;
  return rule;
}

// The argument points to a structure with descriptors at these places.
constexpr IoctlRule points(unsigned long request, std::size_t bytes, bool keeps, std::size_t place,
                           DescriptorPlace second = kNoDescriptor) {
  IoctlRule rule = row(request, IoctlEffect::kAnything);
  rule.descriptors = {static_cast<DescriptorPlace>(place), second};
  rule.bytes = static_cast<std::uint16_t>(bytes);
  rule.keeps_descriptor = keeps;
  return rule;
}

constexpr bool kKept = true;
constexpr bool kForTheCall = false;

using enum IoctlEffect;

constexpr auto kSortedRules = [] {
  std::array rules = {
      // Every file system has these.
      row(FIOCLEX, kCloseOnExec),
      row(FIONCLEX, kNoCloseOnExec),
      row(FIONBIO, kSetsStatusFlags),
      row(FIOASYNC, kSetsStatusFlags),
      row(FIONREAD, kBytesLeft),
      row(FIOQSIZE, kReadsStore),
      row(FIBMAP, kReadsStore),
      row(FIGETBSZ, kHarmless),
      row(FS_IOC_FIEMAP, kReadsStore),
      row(FIFREEZE, kFreezesStore),
      row(FICLONE, kClones),
      row(FICLONERANGE, kClonesRange),
      row(FIDEDUPERANGE, kDeduplicates),
      row(FS_IOC_GETFLAGS, kHarmless),
      row(FS_IOC_GETVERSION, kHarmless),
      row(FS_IOC32_GETFLAGS, kHarmless),
      row(FS_IOC32_GETVERSION, kHarmless),
      row(FS_IOC_SETFLAGS, kSetsAttributes),
      row(FS_IOC32_SETFLAGS, kSetsAttributes),
      row(FS_IOC_FSSETXATTR, kSetsAttributes),
      row(FS_IOC_FSGETXATTR, kHarmless),
      row(FS_IOC_GETFSLABEL, kHarmless),
      row(_IOR(0x15, 0, char[17]), kHarmless),   // FS_IOC_GETFSUUID
      row(_IOR(0x15, 1, char[129]), kHarmless),  // FS_IOC_GETFSSYSFSPATH
      row(_IOW('X', 40, SpaceReservation), kReserves),
      row(_IOW('X', 41, SpaceReservation), kPunches),
      row(_IOW('X', 42, SpaceReservation), kReserves),
      row(_IOW('X', 43, SpaceReservation), kPunches),
      row(_IOW('X', 57, SpaceReservation), kZeroes),
      // Encryption and integrity.
      row(FS_IOC_GET_ENCRYPTION_PWSALT, kHarmless),
      row(FS_IOC_GET_ENCRYPTION_POLICY, kHarmless),
      row(FS_IOC_GET_ENCRYPTION_POLICY_EX, kHarmless),
      row(FS_IOC_GET_ENCRYPTION_KEY_STATUS, kHarmless),
      row(FS_IOC_GET_ENCRYPTION_NONCE, kHarmless),
      row(FS_IOC_ENABLE_VERITY, kWantsNoWriter),
      row(FS_IOC_MEASURE_VERITY, kHarmless),
      row(FS_IOC_READ_VERITY_METADATA, kHarmless),
      // One file system each has these.
      row(_IOR('f', 3, long), kHarmless),               // EXT4_IOC_GETVERSION
      row(_IO('f', 18), kHarmless),                     // EXT4_IOC_PRECACHE_EXTENTS
      row(_IOR('X', 30, std::uint32_t[3]), kHarmless),  // XFS_IOC_DIOINFO
      row(BTRFS_IOC_SYNC, kFreezesStore),
      row(BTRFS_IOC_START_SYNC, kFreezesStore),
      row(BTRFS_IOC_SNAP_CREATE, kFreezesStore),
      row(BTRFS_IOC_SNAP_CREATE_V2, kFreezesStore),
      row(BTRFS_IOC_SUBVOL_SETFLAGS, kFreezesStore),
      points(_IOWR('f', 15, MoveExtent), sizeof(MoveExtent), kForTheCall,
             offsetof(MoveExtent, donor_fd)),
      points(_IOWR(0xf5, 9, F2fsMoveRange), sizeof(F2fsMoveRange), kForTheCall, 0),
      points(_IOWR('X', 109, XfsSwapExtents), sizeof(XfsSwapExtents), kForTheCall,
             offsetof(XfsSwapExtents, to_fd), offsetof(XfsSwapExtents, from_fd)),
      points(_IOW('X', 129, XfsExchangeRange), sizeof(XfsExchangeRange), kForTheCall, 0),
      points(_IOW('X', 131, XfsCommitRange), sizeof(XfsCommitRange), kForTheCall, 0),
      points(BTRFS_IOC_SEND, sizeof(btrfs_ioctl_send_args), kForTheCall, 0),
      takes(_IOW(0xcf, 3, int), kForTheCall),  // CIFS_IOC_COPYCHUNK_FILE
      // Of devices that work on a file from then on.
      takes(LOOP_SET_FD, kKept),
      takes(LOOP_CHANGE_FD, kKept),
      points(LOOP_CONFIGURE, sizeof(loop_config), kKept, 0),
      takes(_IOW(9, 0x2b, int), kKept),  // SET_BITMAP_FILE of md
      points(_IOW(229, 1, FuseBackingMap), sizeof(FuseBackingMap), kKept, 0),
  };
  std::sort(rules.begin(), rules.end(),
            [](const IoctlRule& a, const IoctlRule& b) { return a.request < b.request; });
  return rules;
}();

constexpr bool is_sound() {
  for (std::size_t at = 0; at < kSortedRules.size(); ++at) {
    if (at > 0 && kSortedRules[at - 1].request == kSortedRules[at].request) return false;
    if (kSortedRules[at].bytes > kIoctlBytesMax) return false;
  }
  return true;
}
static_assert(std::is_sorted(kSortedRules.begin(), kSortedRules.end(),
                             [](const IoctlRule& a, const IoctlRule& b) {
                               return a.request < b.request;
                             }));
// The kernel's numbers hold these sizes.
static_assert(sizeof(MoveExtent) == 40 && sizeof(F2fsMoveRange) == 32);
static_assert(sizeof(XfsExchangeRange) == 40 && sizeof(XfsCommitRange) == 88);
static_assert(sizeof(FuseBackingMap) == 16);
static_assert(is_sound(), "two rows of one request, or a structure that finds no room");
static_assert(sizeof(SpaceReservation) == 48 && sizeof(XfsSwapExtents) == 192);

// Requests of other kinds of files, which programs try on whatever they are given. On a regular
// file the kernel refuses them all.
bool is_of_other_files(std::uint32_t request) {
  switch (_IOC_TYPE(request)) {
    case 'T':   // terminals
    case 0x02:  // floppy disks
    case 0x03:  // hard disks
    case 0x12:  // block devices
    case 0x22:  // SCSI
    case 'S':   // optical disks
    case 0x89:  // sockets
      return true;
    default:
      return false;
  }
}

}  // namespace

IoctlRule ioctl_rule(unsigned long request) {
  const auto wanted = static_cast<std::uint32_t>(request);
  const auto* found = std::lower_bound(
      kSortedRules.begin(), kSortedRules.end(), wanted,
      [](const IoctlRule& rule, std::uint32_t value) { return rule.request < value; });
  if (found != kSortedRules.end() && found->request == wanted) return *found;
  return row(wanted, is_of_other_files(wanted) ? kHarmless : kAnything);
}

}  // namespace cairn
