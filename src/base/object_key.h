// SPDX-License-Identifier: Apache-2.0
// What names an object: its kind, its store and its identity inside the store, whatever its path is
// (invariant 5, docs/architecture.md).
//
// Two keys, because two questions have different answers:
//
//   ObjectKey   which object is it, on this node?          store: StoreId, the kernel's number
//   LastingKey  which one, on any node, after a reboot?    store: StoreName, of the file system
//
// The first has the kernel's number (st_dev), because that is safe: it is the same in all
// processes, containers and bind mounts, and two file systems never have one number at a time. A
// file system that is gone may leave its number to another one, but not while anybody has a file of
// it open, and bytes that are not stored have an open file. A closed file's blocks serve again only
// after an open has found its size and times as they were. So a reused number finds at most clean
// blocks, which that open drops, as after any change from outside.
//
// The name is not safe inside a node. A copied disk image has the name of its original. NFS and
// file systems in user space have a name in the mount table alone, which differs between
// containers. To ask a network file system is a message to its server, and may fail for one process
// and not for the next: then one file would have two keys, and two processes would not see each
// other's bytes.
//
// Thread safety: values, no state.
#pragma once

#include <compare>
#include <cstdint>
#include <type_traits>

namespace cairn {

// What an object is made of.
enum class ObjectKind : std::uint8_t {
  kFile = 0,     // a file of a backing store
  kScratch = 1,  // bytes that no store has
  kRegion = 2,   // a chunk of an array
};

// The number that this node's kernel has for a mounted file system: st_dev. It means nothing on
// another node, and may be another file system's once nobody has a file of the first one open.
enum class StoreId : std::uint64_t {};

// A name of a store that is the same on every node and after a reboot
// (memory/backing/store_name.h). kUnknown: the store has none.
enum class StoreName : std::uint64_t { kUnknown = 0 };

constexpr std::uint64_t raw(StoreId id) { return static_cast<std::uint64_t>(id); }
constexpr std::uint64_t raw(StoreName name) { return static_cast<std::uint64_t>(name); }

// A file inside its store. The birth time distinguishes a reused inode number; it is 0 where the
// store has none.
struct FileId {
  std::uint64_t inode = 0;
  std::int64_t birth_ns = 0;

  friend auto operator<=>(const FileId&, const FileId&) = default;
};

struct ObjectKey {
  ObjectKind kind = ObjectKind::kFile;
  StoreId store{};
  FileId id;

  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

struct LastingKey {
  ObjectKind kind = ObjectKind::kFile;
  StoreName store = StoreName::kUnknown;
  FileId id;

  friend auto operator<=>(const LastingKey&, const LastingKey&) = default;
};

static_assert(sizeof(ObjectKey) == 32 && std::is_trivially_copyable_v<ObjectKey>);
static_assert(sizeof(LastingKey) == 32 && std::is_trivially_copyable_v<LastingKey>);
static_assert(ObjectKey().kind == ObjectKind::kFile,
              "an object is a file unless it says otherwise");

// The key of a file; `device` is its st_dev.
constexpr ObjectKey file_key(std::uint64_t device, std::uint64_t inode, std::int64_t birth_ns) {
  return ObjectKey{ObjectKind::kFile, StoreId{device}, FileId{inode, birth_ns}};
}

// What the backing store says of an object at the moment it is opened.
struct StoreStamp {
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  // ObjectTable::reclaims() from before the look: a record that is reclaimed since then may have
  // been this file's, and have changed it. 0: from before the first.
  std::uint32_t reclaims = 0;
};

}  // namespace cairn
