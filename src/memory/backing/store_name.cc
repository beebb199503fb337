// SPDX-License-Identifier: Apache-2.0
#include "memory/backing/store_name.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/system_call.h"

namespace cairn {
namespace {

constexpr std::uint64_t kOverlayType = 0x794c7630;
constexpr std::uint64_t kTmpfsType = 0x01021994;

// linux/fs.h has them since Linux 6.9.
struct FsUuid {
  std::uint8_t length;
  std::uint8_t uuid[StoreFacts::kUuidBytesMax];
};
constexpr unsigned long kGetFsUuid = _IOR(0x15, 0, FsUuid);

// Their files keep their inode numbers from mount to mount and from node to node. Each mount of
// another file system in user space (sshfs) numbers its files anew.
constexpr std::array<std::string_view, 6> kNamedBySource = {
    "nfs", "nfs4", "fuse.mfs", "fuse.glusterfs", "fuse.ceph", "fuse.juicefs"};

// The kernel tells no name of it that outlives the mount, nor is it shared between mounts.
bool has_no_name(const StoreFacts& facts) {
  return facts.type == kOverlayType || facts.type == kTmpfsType;
}

bool has_own_fsid(const StoreFacts& facts) {
  return facts.fsid != 0 && facts.fsid != raw(facts.id) && !has_no_name(facts);
}

// FNV-1a.
class Hash {
 public:
  void add(const void* bytes, std::size_t length) {
    for (std::size_t at = 0; at < length; ++at)
      value_ = (value_ ^ static_cast<const unsigned char*>(bytes)[at]) * 0x100000001b3ULL;
  }
  void add(std::uint64_t word) { add(&word, sizeof word); }
  // Never kUnknown.
  StoreName name() const { return StoreName{value_ == 0 ? 1 : value_}; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace

int read_store_facts(int fd, StoreFacts* facts) {
  *facts = StoreFacts();
  struct ::statx file;
  int error = sys::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &file);
  if (error < 0) return error;
  struct statfs system{};
  error = static_cast<int>(sys::call(SYS_fstatfs, fd, sys::word(&system)));
  if (error < 0) return error;
  facts->id = StoreId{makedev(file.stx_dev_major, file.stx_dev_minor)};
  facts->type = static_cast<std::uint64_t>(system.f_type);
  static_assert(sizeof system.f_fsid == sizeof facts->fsid);
  std::memcpy(&facts->fsid, &system.f_fsid, sizeof facts->fsid);
  // A file system without a block device might pass the request on to a server.
  if (file.stx_dev_major == 0 || has_own_fsid(*facts)) return 0;
  FsUuid answer{};
  if (sys::call(SYS_ioctl, fd, static_cast<long>(kGetFsUuid), sys::word(&answer)) != 0) return 0;
  facts->uuid_bytes = std::min<std::uint8_t>(answer.length, StoreFacts::kUuidBytesMax);
  std::memcpy(facts->uuid, answer.uuid, facts->uuid_bytes);
  return 0;
}

bool is_named_by_source(const StoreFacts& facts) {
  return facts.fsid == 0 && facts.uuid_bytes == 0 && !has_no_name(facts);
}

StoreName name_of(const StoreFacts& facts, std::string_view mount_type, std::string_view source) {
  Hash hash;
  if (has_own_fsid(facts)) {
    hash.add(facts.type);
    hash.add(facts.fsid);
    return hash.name();
  }
  if (facts.uuid_bytes != 0 && facts.type != kTmpfsType) {
    hash.add(facts.type);
    hash.add(facts.uuid, facts.uuid_bytes);
    return hash.name();
  }
  const bool is_known =
      std::find(kNamedBySource.begin(), kNamedBySource.end(), mount_type) != kNamedBySource.end();
  if (!is_named_by_source(facts) || !is_known || source.empty()) return StoreName::kUnknown;
  // Not by the type: one server's file system may be mounted as nfs and as nfs4.
  hash.add(facts.type);
  hash.add(source.data(), source.size());
  return hash.name();
}

StoreName store_name_of(int fd) {
  StoreFacts facts;
  if (read_store_facts(fd, &facts) < 0 || is_named_by_source(facts)) return StoreName::kUnknown;
  return name_of(facts, "", "");
}

}  // namespace cairn
