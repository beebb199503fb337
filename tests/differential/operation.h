// SPDX-License-Identifier: Apache-2.0
//
// One step of a differential script: which actor does what to which slot or name.
//
// A script is generated from a seed alone, without looking at any result, so the same lines run
// natively and under Cairn and any subset of them is again a valid script (that is what lets the
// driver shrink a failure). Steps on an empty slot are logged as skipped.
//
// Thread safety: values only; the generator is used by one thread.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::differential {

// name, class (for --classes and the shrinker), weight
#define CAIRN_DIFFERENTIAL_KINDS(X) \
  X(open, io, 60)                   \
  X(close, io, 14)                  \
  X(read, io, 60)                   \
  X(write, io, 70)                  \
  X(pread, io, 60)                  \
  X(pwrite, io, 80)                 \
  X(readv, io, 10)                  \
  X(writev, io, 12)                 \
  X(preadv, io, 10)                 \
  X(pwritev, io, 12)                \
  X(preadv2, io, 8)                 \
  X(pwritev2, io, 10)               \
  X(lseek, io, 25)                  \
  X(whole, io, 12)                  \
  X(seek_hole, alloc, 5)            \
  X(ftruncate, alloc, 12)           \
  X(truncate, alloc, 8)             \
  X(fallocate, alloc, 12)           \
  X(fallocate_shift, alloc, 2)      \
  X(posix_fallocate, alloc, 3)      \
  X(reserve, ioctl, 8)              \
  X(share_extents, ioctl, 4)        \
  X(move_extents, ioctl, 0)         \
  X(file_flags, ioctl, 2)           \
  X(ask, ioctl, 5)                  \
  X(fstat, meta, 15)                \
  X(stat, meta, 15)                 \
  X(lstat, meta, 5)                 \
  X(statx, meta, 6)                 \
  X(access, meta, 3)                \
  X(chmod, meta, 3)                 \
  X(fchmod, meta, 2)                \
  X(utimensat, time, 5)             \
  X(futimens, time, 4)              \
  X(mtime_hold, time, 1)            \
  X(rename, name, 9)                \
  X(unlink, name, 6)                \
  X(link, name, 4)                  \
  X(symlink, name, 2)               \
  X(readlink, name, 2)              \
  X(mkdir, name, 1)                 \
  X(rmdir, name, 1)                 \
  X(readdir, name, 4)               \
  X(tmpfile, name, 1)               \
  X(same_file, name, 4)             \
  X(dup, dup, 5)                    \
  X(dup2, dup, 4)                   \
  X(dup_fd, dup, 3)                 \
  X(set_flags, dup, 3)              \
  X(get_flags, dup, 3)              \
  X(fsync, sync, 3)                 \
  X(fdatasync, sync, 2)             \
  X(sync_range, sync, 1)            \
  X(fadvise, sync, 3)               \
  X(copy_range, copy, 9)            \
  X(sendfile, copy, 7)              \
  X(splice, copy, 6)                \
  X(flock, lock, 5)                 \
  X(lock, lock, 6)                  \
  X(get_lock, lock, 4)              \
  X(ofd_lock, lock, 4)              \
  X(aio, aio, 5)                    \
  X(lio, aio, 2)                    \
  X(map, map, 7)                    \
  X(unmap, map, 6)                  \
  X(map_read, map, 8)               \
  X(map_write, map, 8)              \
  X(msync, map, 3)                  \
  X(fork, process, 3)               \
  X(exec, process, 2)               \
  X(spawn, process, 1)              \
  X(fopen, stdio, 9)                \
  X(fclose, stdio, 5)               \
  X(fdopen, stdio, 3)               \
  X(freopen, stdio, 2)              \
  X(fread, stdio, 12)               \
  X(fwrite, stdio, 16)              \
  X(fseek, stdio, 9)                \
  X(ftell, stdio, 5)                \
  X(fgets, stdio, 5)                \
  X(fputs, stdio, 5)                \
  X(fprintf, stdio, 3)              \
  X(fscanf, stdio, 2)               \
  X(ungetc, stdio, 4)               \
  X(fflush, stdio, 5)               \
  X(fpeek, stdio, 4)                \
  X(burst, burst, 1)

enum class Kind : std::uint8_t {
#define X(name, group, weight) name,
  CAIRN_DIFFERENTIAL_KINDS(X)
#undef X
      count
};

inline constexpr int kKindCount = static_cast<int>(Kind::count);
inline constexpr int kSlots = 10;    // descriptors of one process
inline constexpr int kStreams = 3;   // stdio streams of one process
inline constexpr int kMappings = 4;  // memory mappings of one process
inline constexpr int kProcesses = 3;
inline constexpr int kThreads = 2;
inline constexpr std::int64_t kFileBytesMax = 6 << 20;
inline constexpr std::int64_t kTransferBytesMax = 320 << 10;

// Names that scripts use, all below the directory under test.
inline constexpr int kSharedNames = 6;
inline constexpr int kNames = 14;
// Name `index` as process `process` spells it; see name_of() for the table.
std::string name_of(std::int64_t index, int process);

struct Operation {
  int number = 0;
  int process = 0;  // -1: all actors at once (burst)
  int thread = 0;
  Kind kind = Kind::open;
  std::int64_t a = 0, b = 0, c = 0, d = 0;
  std::uint64_t seed = 0;  // contents and sub-choices
};

std::string_view kind_name(Kind kind);
std::string_view kind_class(Kind kind);

std::string to_line(const Operation& operation);
// Returns false when the line is not an operation (comment, garbage).
bool from_line(std::string_view line, Operation* operation);

struct GenerateOptions {
  std::uint64_t seed = 1;
  int operations = 1000;
  std::string classes;  // comma separated; empty = all
  std::string without;  // comma separated classes or kinds to leave out
};
std::vector<Operation> generate(const GenerateOptions& options);

// A small generator whose sequence is the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(bound));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

// Offsets and lengths crowd around block and page boundaries, where the mistakes are.
std::int64_t random_offset(Random& random);
std::int64_t random_length(Random& random);

}  // namespace cairn::differential
