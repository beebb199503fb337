// SPDX-License-Identifier: Apache-2.0
// What the durable log says of files: the words that its writers, its readers and recovery share.
//
// Every record has a number (Lsn), counted from 1 without gaps over the life of the log. Records of
// one object take effect in the order of their numbers.
//
// Thread safety: values, no state.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/object_key.h"

namespace cairn::durable {

enum class Lsn : std::uint64_t { kNone = 0 };
constexpr std::uint64_t raw(Lsn lsn) { return static_cast<std::uint64_t>(lsn); }

// The number of an object inside one log. 0 names none.
enum class LogObject : std::uint64_t { kNone = 0 };
constexpr std::uint64_t raw(LogObject object) { return static_cast<std::uint64_t>(object); }

enum class RecordKind : std::uint16_t {
  kSegment = 1,   // the first of each segment: which one it is, where the log begins and goes on
  kObject = 2,    // which file a number means; before its first record in each segment
  kData = 3,      // bytes that were written
  kSize = 4,      // the file was truncated or extended
  kRenamed = 5,   // the file has another path
  kRemoved = 6,   // the file has lost its last name; the store may bring it back (docs/formats.md)
  kStoring = 7,   // the service begins to write the file's bytes to the backing store
  kStored = 8,    // everything up to an Lsn is on the backing store, and durable there
  kCleanEnd = 9,  // the log was closed in order
  kFreed = 10,    // the segments before one are no part of the log any more
  // what some names of a directory mean (name_change.h); the object is the directory
  kNames = 11,
};
inline constexpr RecordKind kRecordKindLast = RecordKind::kNames;

// Whether a record of that kind counts until kStored says that the store has what it says.
inline bool makes_live(RecordKind kind) {
  return kind == RecordKind::kData || kind == RecordKind::kSize || kind == RecordKind::kRenamed ||
         kind == RecordKind::kNames;
}

// Size and time of modification of a file: as the program sees them, or as the store has them.
struct FileState {
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;

  friend auto operator<=>(const FileState&, const FileState&) = default;
};

// The most bytes that one data record carries, and the longest path and file handle.
inline constexpr std::size_t kDataBytesMax = 1U << 20;
inline constexpr std::size_t kPathBytesMax = 16U << 10;
// MAX_HANDLE_SZ of the kernel, and the type before it.
inline constexpr std::size_t kHandleBytesMax = 128 + 4;

// Which file an object is. `key` names it on this node while it runs; inode and birth time name it
// after a reboot too, together with the path.
struct FileIdentity {
  ObjectKey key;
  StoreName store = StoreName::kUnknown;
  // Absolute, as the service reaches it.
  std::string path;
  // From handle_of() (file_handle.h); empty where the store has none.
  std::vector<std::byte> handle;
};

// The window in which the service was writing a file to its store: what it looks like there is then
// no proof that anybody else has changed it. `since_ns` is CLOCK_REALTIME, 0 outside of a window;
// `boot` tells whether the machine has been started since (boot_mark()).
struct StoringWindow {
  std::int64_t since_ns = 0;
  std::uint64_t boot = 0;

  bool is_open() const { return since_ns != 0; }
  friend bool operator==(const StoringWindow&, const StoringWindow&) = default;
};

// A number that is the same until the machine starts again; 0 where the kernel does not tell.
std::uint64_t boot_mark();

}  // namespace cairn::durable
