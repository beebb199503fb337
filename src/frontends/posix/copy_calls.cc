// SPDX-License-Identifier: Apache-2.0
// copy_file_range(), sendfile(), splice(): the kernel cannot move bytes that are in the buffer, so
// they pass through a small piece of memory here. A short count is always allowed.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"
#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_io.h"
#include "frontends/files/file_shape.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/paths/visible_status.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<ssize_t(int, off_t*, int, off_t*, size_t, unsigned)> copy_file_range{
    "copy_file_range"};
constinit RealCall<ssize_t(int, int, off_t*, size_t)> sendfile{"sendfile64"};
constinit RealCall<ssize_t(int, off_t*, int, off_t*, size_t, unsigned)> splice{"splice"};
}  // namespace
}  // namespace real

namespace {

constexpr std::size_t kPieceBytes = 256 * 1024;

// One end of a copy: an open file of ours or a descriptor of the kernel's, at its own offset or at
// a given one.
struct End {
  int fd;
  OpenFile* file;
  off_t* offset;
  bool takes_what_fits = false;  // a pipe's end for splice()

  End(int number, off_t* at) : fd(number), file(DescriptorTable::find(number)), offset(at) {}

  // `mode` is O_RDONLY or O_WRONLY.
  bool allows(int mode) const {
    if (file != nullptr) return mode == O_RDONLY ? file->may_read : file->may_write;
    const int flags = sys::fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_PATH) != 0) return false;
    return (flags & O_ACCMODE) == O_RDWR || (flags & O_ACCMODE) == mode;
  }
  // sendfile() does not write to what appends, unless it is a pipe.
  bool refuses_as_appending() const {
    const int flags = file != nullptr ? static_cast<int>(file->flags()) : sys::fcntl(fd, F_GETFL);
    struct ::statx status;
    if (flags < 0 || (flags & O_APPEND) == 0) return false;
    return sys::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &status) < 0 || !S_ISFIFO(status.stx_mode);
  }
  int real_fd() const { return file == nullptr ? fd : file->private_fd(); }
  off_t position() const {
    if (offset != nullptr) return *offset;
    return file == nullptr ? sys::lseek(fd, 0, SEEK_CUR) : file_seek(*file, 0, SEEK_CUR);
  }
  ssize_t read(void* buffer, std::size_t length) const {
    ssize_t got = 0;
    if (file != nullptr) {
      got = offset == nullptr ? file_read(*file, buffer, length)
                              : file_pread(*file, buffer, length, *offset);
    } else {
      got = offset == nullptr ? sys::read(fd, buffer, length)
                              : sys::pread(fd, buffer, length, *offset);
    }
    if (got > 0 && offset != nullptr) *offset += got;
    return got;
  }
  ssize_t write(const void* buffer, std::size_t length) const {
    ssize_t put = 0;
    if (takes_what_fits) {
      // Only this call gives a pipe as much as it has room for, whatever its own flags say.
      const iovec part{const_cast<void*>(buffer), length};
      put = sys::call(SYS_vmsplice, fd, sys::word(&part), 1, SPLICE_F_NONBLOCK);
    } else if (file != nullptr) {
      put = offset == nullptr ? file_write(*file, buffer, length)
                              : file_pwrite(*file, buffer, length, *offset);
    } else {
      put = offset == nullptr ? sys::write(fd, buffer, length)
                              : sys::pwrite(fd, buffer, length, *offset);
    }
    if (put > 0 && offset != nullptr) *offset += put;
    return put;
  }
  // Bytes that were read but not written go back.
  void unread(std::size_t length) const {
    const auto back = -static_cast<off_t>(length);
    if (offset != nullptr) {
      *offset += back;
    } else if (file != nullptr) {
      file_seek(*file, back, SEEK_CUR);
    } else {
      sys::lseek(fd, back, SEEK_CUR);
    }
  }
};

class Piece {
 public:
  Piece()
      : memory_(sys::mmap(nullptr, kPieceBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0)) {}
  ~Piece() {
    if (is_valid()) sys::munmap(memory_, kPieceBytes);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  bool is_valid() const { return !sys::is_error(memory_); }
  char* bytes() const { return static_cast<char*>(memory_); }

 private:
  void* memory_;
};

// `waits` is false for a source that may run dry for a while (a pipe): what it has now is enough.
ssize_t copy(const End& from, const End& to, std::size_t length, bool waits = true) {
  const Piece piece;
  if (!piece.is_valid()) return -ENOMEM;
  length = std::min(length, kTransferMax);
  std::size_t done = 0;
  while (done < length) {
    const ssize_t got = from.read(piece.bytes(), std::min(kPieceBytes, length - done));
    if (got <= 0) return done > 0 ? static_cast<ssize_t>(done) : got;
    const auto wanted = static_cast<std::size_t>(got);
    CAIRN_DCHECK(wanted <= length - done);
    const ssize_t put = to.write(piece.bytes(), wanted);
    if (put < 0) {
      from.unread(wanted);
      return done > 0 ? static_cast<ssize_t>(done) : put;
    }
    CAIRN_DCHECK(static_cast<std::size_t>(put) <= wanted);
    done += static_cast<std::size_t>(put);
    if (static_cast<std::size_t>(put) < wanted) {
      from.unread(wanted - static_cast<std::size_t>(put));
      break;
    }
    if (!waits) break;
  }
  return static_cast<ssize_t>(done);
}

int mode_of(int fd, mode_t* mode) {
  struct ::statx status;
  const int error = sys::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO, &status);
  if (error == 0) *mode = status.stx_mode;
  return error;
}

// Whether the kernel's sum of the two, without a sign, is past the last number.
bool wraps_around(off_t position, std::size_t length) {
  const auto begin = static_cast<std::uint64_t>(position);
  return begin + length < begin;
}

// The kernel's objection to a copy between the two: for a copy of no bytes it checks the files and
// descriptors, in its own order. We check the rest: appending, which our descriptors never do, and
// the positions with the true length.
ssize_t objection_to_copy(const End& from, const End& to, std::size_t length, unsigned flags) {
  const bool appends = to.file != nullptr && (to.file->flags() & O_APPEND) != 0;
  const off_t from_position = from.position();
  const off_t to_position = to.position();
  off_t from_at = std::max<off_t>(0, from_position);
  off_t to_at = appends ? 0 : std::max<off_t>(0, to_position);
  const long error = sys::call(SYS_copy_file_range, from.real_fd(), sys::word(&from_at),
                               to.real_fd(), sys::word(&to_at), 0, static_cast<long>(flags));
  const bool is_told_before = error == -EBADF || error == -EISDIR || error == -EINVAL;
  if (appends && !is_told_before) return -EBADF;
  if (error < 0) return error;
  if (wraps_around(from_position, length) || wraps_around(to_position, length)) return -EOVERFLOW;
  return from_position < 0 || to_position < 0 ? -EINVAL : 0;
}

ssize_t copy_range(const End& from, const End& to, std::size_t length, unsigned flags) {
  if (const ssize_t error = objection_to_copy(from, to, length, flags); error < 0) return error;
  // One of the two may be buffered and the other not, where that is a matter of the name.
  std::array<struct ::statx, 2> status;
  const unsigned wanted = STATX_INO | STATX_SIZE;
  if (sys::statx(from.fd, "", AT_EMPTY_PATH, wanted, &status[0]) < 0 ||
      sys::statx(to.fd, "", AT_EMPTY_PATH, wanted, &status[1]) < 0) {
    return -EBADF;
  }
  if (is_same_file(status[0], status[1])) {
    // As the kernel does it: cut to the end of the file first, then refuse what still overlaps.
    const off_t begin = from.position();
    const off_t size =
        from.file != nullptr ? file_size(*from.file) : static_cast<off_t>(status[0].stx_size);
    const off_t left = std::max<off_t>(0, size - begin);
    const auto count = static_cast<off_t>(std::min(static_cast<std::size_t>(left), length));
    if (to.position() + count > begin && to.position() < begin + count) return -EINVAL;
    length = static_cast<std::size_t>(count);
  }
  return copy(from, to, length);
}

// Whether what is to be read would end behind the last position that a file can have, which the
// kernel looks at before it looks at where the bytes go (rw_verify_area()).
bool ends_past_all_positions(const End& from, std::size_t length) {
  constexpr auto kLast = static_cast<std::size_t>(std::numeric_limits<off_t>::max());
  const off_t position = from.position();
  return length > kLast - static_cast<std::size_t>(std::max<off_t>(position, 0));
}

// Whether what is to be read begins behind the last byte that a file of the two file systems can
// have. Only the kernel knows, and says so of a transfer of no bytes, before it looks at anything
// else: a directory may stand there.
bool begins_past_all_files(const End& from, const End& to, std::size_t length) {
  off_t begin = from.position();
  if (begin < 0 || begin == std::numeric_limits<off_t>::max()) return false;
  if (length != 0) ++begin;
  return sys::call(SYS_sendfile, to.real_fd(), from.real_fd(), sys::word(&begin), 0) == -EOVERFLOW;
}

ssize_t send_file(int to_fd, int from_fd, off_t* offset, std::size_t length) {
  const End from(from_fd, offset);
  const End to(to_fd, nullptr);
  if (!from.allows(O_RDONLY)) return -EBADF;
  if (offset != nullptr && *offset < 0) return -EINVAL;
  if (ends_past_all_positions(from, length)) return -EINVAL;
  if (!to.allows(O_WRONLY)) return -EBADF;
  if (begins_past_all_files(from, to, length)) return -EOVERFLOW;
  if (to.refuses_as_appending()) return -EINVAL;
  if (from.file == nullptr) {
    mode_t mode = 0;
    if (const int error = mode_of(from_fd, &mode); error < 0) return error;
    // Nothing at all can be sent from whatever has a position, from a directory too.
    if (length == 0 && sys::lseek(from_fd, 0, SEEK_CUR) >= 0) return 0;
    if (!S_ISREG(mode) && !S_ISBLK(mode)) return -EINVAL;
  }
  return copy(from, to, length);
}

bool is_ours(int first, int second) {
  return DescriptorTable::find(first) != nullptr || DescriptorTable::find(second) != nullptr;
}

// Waits until the pipe has bytes or room, whichever is wanted. 0 or -errno.
int wait_for_pipe(int fd, short event, bool waits) {
  pollfd entry{fd, event, 0};
  const long ready = sys::call(SYS_poll, sys::word(&entry), 1, waits ? -1 : 0);
  if (ready < 0) return static_cast<int>(ready);
  return ready == 0 ? -EAGAIN : 0;
}

// One end must be a pipe; a pipe that is full or empty decides how much moves.
ssize_t splice_file(const End& from, End to, std::size_t length, unsigned flags) {
  mode_t other_mode = 0;
  if (!from.allows(O_RDONLY) || !to.allows(O_WRONLY)) return -EBADF;
  const bool is_into_pipe = from.file != nullptr;
  const int other = is_into_pipe ? to.fd : from.fd;
  if (const int error = mode_of(other, &other_mode); error < 0) return error;
  if (!S_ISFIFO(other_mode)) return -EINVAL;
  if (to.file != nullptr && (to.file->flags() & O_APPEND) != 0) return -EINVAL;
  const int status = sys::fcntl(other, F_GETFL);
  const bool waits = (flags & SPLICE_F_NONBLOCK) == 0 && (status & O_NONBLOCK) == 0;
  to.takes_what_fits = is_into_pipe;
  // A pipe holds this much without a reader.
  constexpr std::size_t kPipeBytes = 65536;
  for (;;) {
    if (const int error = wait_for_pipe(other, is_into_pipe ? POLLOUT : POLLIN, waits); error < 0)
      return error;
    const ssize_t moved = copy(from, to, std::min(length, kPipeBytes), false);
    if (moved != -EAGAIN || !waits) return moved;  // another writer took the room
  }
}

// An offset that the application gave by its address: taken at the beginning of the call, given
// back at its end.
class GivenOffset {
 public:
  explicit GivenOffset(off_t* given)
      : given_(given), is_bad_(given != nullptr && !get_user(&value_, given)) {}
  bool is_bad() const { return is_bad_; }
  off_t* get() { return given_ != nullptr ? &value_ : nullptr; }
  // False when it cannot be written, although the call has done its work.
  bool give_back() const { return given_ == nullptr || put_user(given_, value_); }

 private:
  off_t* given_;
  off_t value_ = 0;
  bool is_bad_;
};

}  // namespace
}  // namespace cairn

using cairn::GivenOffset;
using cairn::with_errno;

CAIRN_HOOK(ssize_t, copy_file_range,
           (int from, off_t* from_offset, int to, off_t* to_offset, size_t length,
            unsigned flags)) {
  if (!cairn::is_ours(from, to)) {
    return cairn::real::copy_file_range(from, from_offset, to, to_offset, length, flags);
  }
  GivenOffset from_at(from_offset);
  GivenOffset to_at(to_offset);
  if (from_at.is_bad() || to_at.is_bad()) return with_errno(-EFAULT);
  const ssize_t done = cairn::copy_range({from, from_at.get()}, {to, to_at.get()}, length, flags);
  const bool is_told = done <= 0 || (from_at.give_back() && to_at.give_back());
  return with_errno(is_told ? done : -EFAULT);
}

CAIRN_HOOK(ssize_t, sendfile, (int to, int from, off_t* offset, size_t length)) {
  if (!cairn::is_ours(from, to)) return cairn::real::sendfile(to, from, offset, length);
  GivenOffset at(offset);
  if (at.is_bad()) return with_errno(-EFAULT);
  const ssize_t done = cairn::send_file(to, from, at.get(), length);
  return with_errno(at.give_back() ? done : -EFAULT);
}
CAIRN_TWIN(sendfile, sendfile64);

CAIRN_HOOK(ssize_t, splice,
           (int from, off_t* from_offset, int to, off_t* to_offset, size_t length,
            unsigned flags)) {
  if (length == 0) return 0;  // before any descriptor is looked at, as in the kernel
  constexpr unsigned kKnown = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;
  if (!cairn::is_ours(from, to)) {
    return cairn::real::splice(from, from_offset, to, to_offset, length, flags);
  }
  if ((flags & ~kKnown) != 0) return with_errno<ssize_t>(-EINVAL);
  GivenOffset from_at(from_offset);
  GivenOffset to_at(to_offset);
  if (from_at.is_bad() || to_at.is_bad()) return with_errno(-EFAULT);
  const ssize_t done = cairn::splice_file({from, from_at.get()}, {to, to_at.get()}, length, flags);
  const bool is_told = done < 0 || (from_at.give_back() && to_at.give_back());
  return with_errno(is_told ? done : -EFAULT);
}
