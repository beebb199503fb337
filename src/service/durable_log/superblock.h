// SPDX-License-Identifier: Apache-2.0
// The superblock: what makes a folder of segments one durable log, found again after a reboot
// (docs/formats.md, "Durable log").
//
//   64 bytes   magic "CAIRNDLG", version u32, bytes u32 (64), uuid u64 u64, creation u64 (ns since
//              1970), segment bytes u64, zero u64, checksum u64 (XXH3, seed 0)
//
// It is written under another name, flushed, and renamed, so there is a whole one or none. A
// node or command that has the log open locks it.
//
// Thread safety: pure functions and system calls. Ownership: values.
#pragma once

#include <cstdint>
#include <memory>

#include "service/durable_log/log_storage.h"

namespace cairn::durable {

inline constexpr const char* kSuperblockName = "superblock";
// Version 1 has no records of names. Readers take it as it is, and a writer first replaces its
// superblock by one of this version.
inline constexpr std::uint32_t kLogVersion = 2;
inline constexpr std::uint32_t kLogVersionFirst = 1;
inline constexpr std::size_t kSuperblockBytes = 64;

inline constexpr std::uint64_t kSegmentBytesDefault = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kSegmentBytesMin = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kSegmentBytesMax = std::uint64_t{4} << 30;

struct Superblock {
  std::uint64_t uuid[2] = {};
  std::int64_t created_ns = 0;
  std::uint64_t segment_bytes = kSegmentBytesDefault;
  std::uint32_t version = kLogVersion;  // the file's; encoding writes kLogVersion

  // What the checksums of all records are seeded with.
  std::uint64_t log() const { return uuid[0] ^ uuid[1]; }
};

// A superblock with a new uuid. Requires: segment_bytes between the limits, a multiple of 4096.
Superblock new_superblock(std::uint64_t segment_bytes);
Status write_superblock(LogStorage& storage, const Superblock& superblock);

// A superblock whose file is open: for as long as that is so, nobody else can lock it.
struct OpenSuperblock {
  Superblock content;
  std::unique_ptr<LogFile> file;
};

enum class SuperblockLock : std::uint8_t { kNone, kTaken };

// Errors: kNotFound; kIncompatible: another version, and what to do; kInvalid: damaged;
// kUnavailable: kTaken is wanted and another node or command has it.
Result<OpenSuperblock> open_superblock(LogStorage& storage, SuperblockLock lock);

}  // namespace cairn::durable
