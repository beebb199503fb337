// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "base/check.h"
#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/files/direct_io.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/file_shape.h"
#include "frontends/files/file_use.h"
#include "frontends/files/kernel_offset.h"
#include "frontends/files/offset_guard.h"
#include "frontends/files/parts_copy.h"
#include "frontends/libc/cancellation.h"
#include "memory/backing/size_limit.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

bool is_synchronous(std::uint32_t flags) { return (flags & O_DSYNC) != 0; }

// A write that starts or ends past the process's limit, or where the backing file system may not
// follow: the kernel decides, with its errno and its signal, on a file that it sees as the
// application does.
enum class Place : std::uint8_t { kAtOffset, kAtEnd };
std::span<const std::byte> bytes_at(const void* buffer, std::size_t length) {
  return {static_cast<const std::byte*>(buffer), length};
}
[[gnu::noinline]] ssize_t write_past_limit(Actor& actor, FileUse& use,
                                           std::span<const std::byte> bytes, Place place,
                                           std::uint64_t* offset) {
  if (!use.begin()) return -EBADF;
  const ObjectAccess access = use.access(actor);
  const int entered = enter_through(access);
  if (entered < 0) return entered;
  // The kernel says where the end is: others may append beside us.
  const ssize_t written =
      place == Place::kAtEnd
          ? access.backing.append(bytes.data(), bytes.size(), offset)
          : sys::pwrite(use.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(*offset));
  if (written > 0) {
    Object& object = access.object();
    const std::uint64_t end = *offset + static_cast<std::uint64_t>(written);
    raise_to(object.store_size, end);  // no reader looks into the store past this
    object.extend_to(end);
  }
  leave_through(actor, use.object());
  return written > 0 ? store_if_promised(access, written) : written;
}

[[gnu::always_inline]] inline ssize_t write_at(Actor& actor, FileUse& use, const void* buffer,
                                               std::size_t length, std::uint64_t offset) {
  if (__builtin_expect(offset + length > checked_size.load(std::memory_order_relaxed), 0)) {
    return write_past_limit(actor, use, bytes_at(buffer, length), Place::kAtOffset, &offset);
  }
  return write_object(use.access(actor), offset, buffer, length);
}

ssize_t append(Actor& actor, FileUse& use, const void* buffer, std::size_t length,
               std::uint64_t* offset) {
  const std::uint64_t size = actor.object(use.object()).size.load(std::memory_order_relaxed);
  if (__builtin_expect(size + length > checked_size.load(std::memory_order_relaxed), 0)) {
    return write_past_limit(actor, use, bytes_at(buffer, length), Place::kAtEnd, offset);
  }
  return append_object(use.access(actor), buffer, length, offset);
}

[[gnu::noinline]] ssize_t store_written(Actor& actor, FileUse& use, ssize_t written) {
  if (!use.begin()) return -EBADF;
  const int error = sync_object(use.access(actor), true, &use.file().description->error_seen);
  return error < 0 ? error : written;
}
// What has to be stored before the call returns counts on the record first: once its bytes are in
// the buffer, the call must not begin again for want of that.
[[gnu::always_inline]] inline bool is_too_late_to_store(const Actor& actor, FileUse& use,
                                                        bool is_durable) {
  const bool is_stored =
      is_durable || actor.object(use.object()).handling().mode == BufferingMode::kSync;
  return __builtin_expect(is_stored, 0) && !use.begin();
}
inline ssize_t finish_write(Actor& actor, FileUse& use, ssize_t written, bool is_durable) {
  if (__builtin_expect(is_durable, 0) && written > 0) return store_written(actor, use, written);
  return written;
}

[[gnu::noinline]] std::uint64_t offset_in_kernel(const OpenFile& file) {
  const off_t offset = sys::lseek(file.shared_fd(), 0, SEEK_CUR);
  return offset < 0 ? 0 : static_cast<std::uint64_t>(offset);
}
inline std::uint64_t offset_of_description(const OpenFile& file) {
  if (__builtin_expect(file.is_offset_in_kernel(), 0)) return offset_in_kernel(file);
  return file.description->offset.load(std::memory_order_relaxed);
}
void set_offset(OpenFile& file, std::uint64_t offset) {
  if (__builtin_expect(file.is_offset_in_kernel(), 0)) {
    sys::lseek(file.shared_fd(), static_cast<off_t>(offset), SEEK_SET);
  }
  file.description->offset.store(offset, std::memory_order_relaxed);
}

// Sum of the parts, or -errno as the kernel checks a vector.
ssize_t checked_length(const iovec* parts, int count) {
  for (int index = 0; index < count; ++index) {
    if (static_cast<ssize_t>(parts[index].iov_len) < 0) return -EINVAL;
  }
  std::size_t total = 0;
  for (int index = 0; index < count; ++index) {
    if (is_outside_user_space(parts[index].iov_base, parts[index].iov_len)) return -EFAULT;
    total = std::min(total + parts[index].iov_len, kTransferMax);
  }
  return static_cast<ssize_t>(total);
}

// A checked vector: its parts, and how many bytes a call transfers of them at most.
struct Vector {
  std::span<const iovec> parts;
  std::size_t total;
};

ssize_t read_parts(Actor& actor, FileUse& use, const Vector& vector, std::uint64_t offset) {
  std::size_t done = 0;
  for (const iovec& part : vector.parts) {
    const std::size_t length = std::min(part.iov_len, vector.total - done);
    if (length == 0) continue;
    const ssize_t got = read_object(use.access(actor), offset + done, part.iov_base, length);
    if (got < 0) return done > 0 ? static_cast<ssize_t>(done) : got;
    done += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < length) break;
  }
  CAIRN_DCHECK(done <= vector.total);
  return static_cast<ssize_t>(done);
}

ssize_t write_parts(Actor& actor, FileUse& use, const Vector& vector, std::uint64_t offset) {
  std::size_t done = 0;
  for (const iovec& part : vector.parts) {
    const std::size_t length = std::min(part.iov_len, vector.total - done);
    if (length == 0) continue;
    const ssize_t put = write_at(actor, use, part.iov_base, length, offset + done);
    if (put < 0) return done > 0 ? static_cast<ssize_t>(done) : put;
    done += static_cast<std::size_t>(put);
    if (static_cast<std::size_t>(put) < length) break;
  }
  CAIRN_DCHECK(done <= vector.total);
  return static_cast<ssize_t>(done);
}

// As much of the vector as there is of the application's memory.
std::size_t readable_total(const Vector& vector) {
  std::size_t there = 0;
  for (const iovec& part : vector.parts) {
    const std::size_t length = std::min(part.iov_len, vector.total - there);
    const std::size_t readable = length == 0 ? 0 : readable_bytes(part.iov_base, length);
    there += readable;
    if (readable < length) break;
  }
  CAIRN_DCHECK(there <= vector.total);
  return there;
}

// An append is one piece: the parts are gathered first, so that nobody else's append falls between
// them.
ssize_t append_parts(Actor& actor, FileUse& use, const Vector& vector, std::uint64_t* offset) {
  const std::span<const iovec> parts = vector.parts;
  std::size_t total = vector.total;
  if (parts.size() == 1) return append(actor, use, parts[0].iov_base, total, offset);
  constexpr std::size_t kStackBytes = 2048;
  char small[kStackBytes] = {};
  char* gathered = small;
  if (total > kStackBytes) {
    // Before the buffer is mapped: it may come to lie where the application has no memory.
    total = readable_total(vector);
    if (total == 0) return -EFAULT;
    void* memory =
        sys::mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys::is_error(memory)) return -ENOMEM;
    gathered = static_cast<char*>(memory);
  }
  std::size_t filled = 0;
  for (const iovec& part : parts) {
    const std::size_t length = std::min(part.iov_len, total - filled);
    const std::size_t missing = user_copy(gathered + filled, part.iov_base, length);
    filled += length - missing;
    if (missing > 0) break;
  }
  CAIRN_DCHECK(filled <= total);
  const ssize_t result = filled > 0 ? append(actor, use, gathered, filled, offset) : -EFAULT;
  if (gathered != small) sys::munmap(gathered, total);
  return result;
}

constexpr int kNoAppend = 0x20;  // RWF_NOAPPEND, newer than Debian 12's headers

// What the kernel has against the flags of a call, as a read behind every end shows it. Without a
// right to read, the flags that not every file system has are refused.
int objection_to_flags(const OpenFile& file, int flags) {
  constexpr int kEverywhere = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND;
  if ((flags & ~kEverywhere) == 0) return 0;
  if (!file.may_read && (flags & ~(kEverywhere | kNoAppend)) != 0) return -EOPNOTSUPP;
  if (!file.may_read) return (flags & RWF_APPEND) != 0 ? -EINVAL : 0;
  char byte;
  const iovec part{&byte, 1};
  // Where the private descriptor has O_DIRECT's rules to keep, no byte is read: it never has them.
  constexpr off_t kBehindAll = std::numeric_limits<off_t>::max() - 1;
  const long result = sys::call(SYS_preadv2, file.private_fd(), sys::word(&part), 1, kBehindAll, 0,
                                static_cast<long>(flags));
  return result == -EOPNOTSUPP || result == -EINVAL ? static_cast<int>(result) : 0;
}

// Whether the file system has no files as long as that: some of them end at 4 GiB, ext4 at 16 TiB.
// The private descriptor's own offset is nobody's, unless the kernel keeps the program's there.
bool is_past_the_largest_file(FileUse& use, off_t target) {
  constexpr off_t kEverywhere = UINT32_MAX;
  if (__builtin_expect(target <= kEverywhere, 1) || use.file().is_offset_in_kernel()) return false;
  return use.begin() && sys::lseek(use.descriptor(), target, SEEK_SET) == -EINVAL;
}

// Positions of data and holes: the backing file answers once it has everything.
off_t seek_data_or_hole(Actor& actor, FileUse& use, off_t offset, int whence) {
  if (!use.begin()) return -EBADF;
  const int error = sync_object(use.access(actor), false, nullptr);
  if (error < 0) return error;
  return sys::lseek(use.descriptor(), offset, whence);
}

// rw_verify_area() of Linux: no byte has such an offset.
bool is_past_all_offsets(std::uint64_t offset, std::size_t length) {
  return length > static_cast<std::uint64_t>(INT64_MAX) - offset;
}

}  // namespace

ssize_t file_pread_any(OpenFile& file, void* buffer, std::size_t length, off_t offset) {
  cancellation_point();
  if (__builtin_expect(offset < 0, 0)) return -EINVAL;
  if (__builtin_expect(!file.may_read, 0)) return -EBADF;
  if (__builtin_expect(is_outside_user_space(buffer, length), 0)) return -EFAULT;
  Actor* actor = Session::instance().actor_if_any();
  if (__builtin_expect(actor == nullptr, 0)) return -EIO;
  const auto begin = static_cast<std::uint64_t>(offset);
  if (__builtin_expect(is_past_all_offsets(begin, length), 0)) return -EINVAL;
  if (__builtin_expect(!file.reads_plainly, 0)) {
    const iovec part{buffer, length};
    if (is_refused_read(file, &part, 1, begin)) return -EINVAL;
  }
  FileUse use(file);
  const ssize_t got =
      read_object(use.access(*actor), begin, buffer, std::min(length, kTransferMax));
  if (got > 0) {
    const NodeMemory& memory = *actor->memory;
    const BlockNumber number = block_of(begin);
    const BucketIndex bucket = memory.directory().guess(use.object(), number);
    if (memory.block(bucket).holds(use.object(), number)) file.hint.learn(number, bucket);
  }
  return got;
}

ssize_t file_pwrite(OpenFile& file, const void* buffer, std::size_t length, off_t offset) {
  if (__builtin_expect(offset < 0, 0)) return -EINVAL;
  if (__builtin_expect(!file.may_write, 0)) return -EBADF;
  if (__builtin_expect(is_outside_user_space(buffer, length), 0)) return -EFAULT;
  Actor* actor = Session::instance().actor_if_any();
  if (__builtin_expect(actor == nullptr, 0)) return -EIO;
  if (length == 0) return 0;
  look_after_node_at_write();
  length = std::min(length, kTransferMax);
  const std::uint32_t flags = file.flags();
  std::uint64_t where = static_cast<std::uint64_t>(offset);
  FileUse use(file);
  if (__builtin_expect(file.has_lost_description(), 0)) return -EBADF;
  if (is_too_late_to_store(*actor, use, is_synchronous(flags))) return -EBADF;
  if (__builtin_expect((flags & O_DIRECT) != 0, 0)) {
    const iovec part{const_cast<void*>(buffer), length};
    if (is_refused_write(file, &part, 1, where)) return -EINVAL;
  }
  const ssize_t written = __builtin_expect((flags & O_APPEND) != 0, 0)
                              ? append(*actor, use, buffer, length, &where)
                              : write_at(*actor, use, buffer, length, where);
  return finish_write(*actor, use, written, is_synchronous(flags));
}

namespace {

// Everything that is not one plain hit. The use ends after the offset lock, which may go with it.
[[gnu::noinline]] ssize_t read_at_offset(Actor& actor, OpenFile& file, void* buffer,
                                         std::size_t length) {
  FileUse use(file);
  const OffsetGuard guard(actor, file);
  if (__builtin_expect(guard.is_late(), 0)) return -EBADF;
  if (__builtin_expect(file.is_offset_in_kernel(), 0) && is_offset_moved_by_kernel(actor, file)) {
    const iovec part{buffer, length};
    return read_at_kernel_offset(actor, use, &part, 1);
  }
  const std::uint64_t offset = offset_of_description(file);
  if (__builtin_expect(is_past_all_offsets(offset, length), 0)) return -EINVAL;
  if (__builtin_expect(!file.reads_plainly, 0)) {
    const iovec part{buffer, length};
    if (is_refused_read(file, &part, 1, offset)) return -EINVAL;
  }
  const ssize_t got =
      read_object(use.access(actor), offset, buffer, std::min(length, kTransferMax));
  if (got > 0) set_offset(file, offset + static_cast<std::uint64_t>(got));
  return got;
}

}  // namespace

ssize_t file_read(OpenFile& file, void* buffer, std::size_t length) {
  if (__builtin_expect(!file.may_read, 0)) return -EBADF;
  if (__builtin_expect(is_outside_user_space(buffer, length), 0)) return -EFAULT;
  Actor* actor = Session::instance().actor_if_any();
  if (__builtin_expect(actor == nullptr, 0)) return -EIO;
  if (__builtin_expect(file.reads_plainly && !file.is_offset_in_kernel(), 1)) {
    const OffsetGuard guard(*actor, file);
    if (__builtin_expect(guard.is_late(), 0)) return -EBADF;
    std::atomic<std::uint64_t>& offset = file.description->offset;
    const std::uint64_t at = offset.load(std::memory_order_relaxed);
    const ObjectIndex index = file.object;
    if (read_hit(*actor, actor->object(index), index, nullptr, {at, buffer, length})) {
      offset.store(at + length, std::memory_order_relaxed);
      return static_cast<ssize_t>(length);
    }
  }
  return read_at_offset(*actor, file, buffer, length);
}

ssize_t file_write(OpenFile& file, const void* buffer, std::size_t length) {
  if (__builtin_expect(!file.may_write, 0)) return -EBADF;
  if (__builtin_expect(is_outside_user_space(buffer, length), 0)) return -EFAULT;
  Actor* actor = Session::instance().actor_if_any();
  if (__builtin_expect(actor == nullptr, 0)) return -EIO;
  if (length == 0) return 0;
  look_after_node_at_write();
  length = std::min(length, kTransferMax);
  const std::uint32_t flags = file.flags();
  const bool appends = (flags & O_APPEND) != 0;
  FileUse use(file);
  ssize_t written = 0;
  {
    const OffsetGuard guard(*actor, file);
    if (__builtin_expect(guard.is_late(), 0)) return -EBADF;
    if (is_too_late_to_store(*actor, use, is_synchronous(flags))) return -EBADF;
    if (__builtin_expect(file.is_offset_in_kernel(), 0) && !appends &&
        is_offset_moved_by_kernel(*actor, file)) {
      const iovec part{const_cast<void*>(buffer), length};
      written = write_at_kernel_offset(*actor, use, &part, 1);
    } else {
      std::uint64_t offset = offset_of_description(file);
      if (__builtin_expect((flags & O_DIRECT) != 0, 0)) {
        const iovec part{const_cast<void*>(buffer), length};
        if (is_refused_write(file, &part, 1, offset)) return -EINVAL;
      }
      written = appends ? append(*actor, use, buffer, length, &offset)
                        : write_at(*actor, use, buffer, length, offset);
      if (written > 0) set_offset(file, offset + static_cast<std::uint64_t>(written));
    }
  }
  return finish_write(*actor, use, written, is_synchronous(flags));
}

ssize_t file_readv(OpenFile& file, const iovec* parts, int count, off_t offset, int flags) {
  if (offset < -1) return -EINVAL;
  if (!file.may_read) return -EBADF;
  PartsCopy copy;
  if (const int error = copy.take(parts, count); error < 0) return error;
  parts = copy.get();
  const ssize_t total = checked_length(parts, count);
  if (total <= 0) return total;
  if (const int error = objection_to_flags(file, flags & ~RWF_NOWAIT); error < 0) return error;
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return -EIO;
  const Vector vector{std::span(parts, static_cast<std::size_t>(count)),
                      static_cast<std::size_t>(total)};
  FileUse use(file);
  if (offset >= 0) {
    const auto begin = static_cast<std::uint64_t>(offset);
    if (is_past_all_offsets(begin, vector.total)) return -EINVAL;
    if (!file.reads_plainly && is_refused_read(file, parts, count, begin)) return -EINVAL;
    return read_parts(*actor, use, vector, begin);
  }
  const OffsetGuard guard(*actor, file);
  if (guard.is_late()) return -EBADF;
  if (is_offset_moved_by_kernel(*actor, file))
    return read_at_kernel_offset(*actor, use, parts, count);
  const std::uint64_t begin = offset_of_description(file);
  if (!file.reads_plainly && is_refused_read(file, parts, count, begin)) return -EINVAL;
  const ssize_t got = read_parts(*actor, use, vector, begin);
  if (got > 0) set_offset(file, begin + static_cast<std::uint64_t>(got));
  return got;
}

ssize_t file_writev(OpenFile& file, const iovec* parts, int count, off_t offset, int flags) {
  if (offset < -1) return -EINVAL;
  if (!file.may_write) return -EBADF;
  PartsCopy copy;
  if (const int error = copy.take(parts, count); error < 0) return error;
  parts = copy.get();
  const ssize_t total = checked_length(parts, count);
  if (total <= 0) return total;
  if (const int error = objection_to_flags(file, flags); error < 0) return error;
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return -EIO;
  look_after_node_at_write();
  const Vector vector{std::span(parts, static_cast<std::size_t>(count)),
                      static_cast<std::size_t>(total)};
  const std::uint32_t status = file.flags();
  const bool appends =
      (flags & kNoAppend) == 0 && ((status & O_APPEND) != 0 || (flags & RWF_APPEND) != 0);
  const bool is_durable = is_synchronous(status) || (flags & (RWF_DSYNC | RWF_SYNC)) != 0;
  FileUse use(file);
  if (is_too_late_to_store(*actor, use, is_durable)) return -EBADF;
  ssize_t written = 0;
  if (offset >= 0) {
    std::uint64_t where = static_cast<std::uint64_t>(offset);
    if (is_refused_write(file, parts, count, where)) return -EINVAL;
    written = appends ? append_parts(*actor, use, vector, &where)
                      : write_parts(*actor, use, vector, where);
  } else if (const OffsetGuard guard(*actor, file); guard.is_late()) {
    return -EBADF;
  } else if (!appends && is_offset_moved_by_kernel(*actor, file)) {
    written = write_at_kernel_offset(*actor, use, parts, count);
  } else {
    std::uint64_t where = offset_of_description(file);
    if (is_refused_write(file, parts, count, where)) return -EINVAL;
    written = appends ? append_parts(*actor, use, vector, &where)
                      : write_parts(*actor, use, vector, where);
    if (written > 0) set_offset(file, where + static_cast<std::uint64_t>(written));
  }
  return finish_write(*actor, use, written, is_durable);
}

off_t file_seek(OpenFile& file, off_t offset, int whence) {
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return -EIO;
  std::int64_t base = 0;
  FileUse use(file);
  const OffsetGuard guard(*actor, file);
  if (guard.is_late()) return -EBADF;
  switch (whence) {
    case SEEK_SET:
      break;
    case SEEK_CUR:
      // In one step, as others may move it without the lock.
      if (file.is_offset_in_kernel()) return sys::lseek(file.shared_fd(), offset, SEEK_CUR);
      base = static_cast<std::int64_t>(offset_of_description(file));
      break;
    case SEEK_END:
      base = file_size(file);
      break;
    case SEEK_DATA:
    case SEEK_HOLE: {
      const off_t found = seek_data_or_hole(*actor, use, offset, whence);
      if (found >= 0) set_offset(file, static_cast<std::uint64_t>(found));
      return found;
    }
    default:
      return -EINVAL;
  }
  off_t target = 0;
  if (__builtin_add_overflow(base, offset, &target) || target < 0) return -EINVAL;
  if (is_past_the_largest_file(use, target)) return -EINVAL;
  set_offset(file, static_cast<std::uint64_t>(target));
  return target;
}

int file_sync(OpenFile& file, bool durable) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return -EIO;
  look_after_node();
  FileUse use(file);
  if (!use.begin()) return -EBADF;
  const ObjectAccess access = use.access(*actor);
  const int error = sync_object(access, durable, &file.description->error_seen);
  const bool is_without_service = error == -EIO && !file.may_write;
  if (!is_without_service || !store_by_own_writer(*actor, use.object())) return error;
  return sync_object(access, durable, &file.description->error_seen);
}

}  // namespace cairn
