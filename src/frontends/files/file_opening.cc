// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/file_opening.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/descriptor_path.h"
#include "base/system_call.h"
#include "frontends/client/opening_guard.h"
#include "frontends/client/process_page.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file_pool.h"
#include "frontends/descriptors/placeholder.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/descriptors/twin_descriptor.h"
#include "frontends/files/direct_io.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/file_shape.h"
#include "frontends/files/guard_change.h"
#include "frontends/files/kernel_files.h"
#include "frontends/files/unheld_files.h"
#include "frontends/libc/real_calls.h"
#include "frontends/paths/buffer_candidate.h"
#include "frontends/paths/file_handling.h"
#include "frontends/paths/visible_status.h"
#include "frontends/processes/vfork_shadow.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

// Through libc and not by our own system call: open() is a cancellation point, and may wait
// (FIFOs).
constinit RealCall<int(int, const char*, int, ...)> real_openat{"openat64"};

StoreStatus to_store_status(const struct ::statx& raw) {
  StoreStatus status;
  status.key = key_of(raw);
  status.stamp = stamp_of(raw);
  status.mode = raw.stx_mode;
  status.links = raw.stx_nlink;
  status.attributes = raw.stx_attributes;
  return status;
}

// A descriptor that the kernel has just opened.
struct Opened {
  int fd;
  int flags;  // as the kernel got them
  // It was opened with these flags and no others, and nobody knows its number yet.
  bool is_ours_alone;
};

// The answer of F_GETFL. An open with everyday flags needs no question: the kernel keeps some of
// them, forgets those of the creation, and adds one.
int status_flags(const Opened& opened) {
#if defined(__x86_64__) || defined(__aarch64__)
#if defined(__x86_64__)
  constexpr int kLargeFile = 0100000;  // as the kernel has it: libc's own is 0
#else
  constexpr int kLargeFile = 0400000;
#endif
  constexpr int kKept = O_ACCMODE | O_APPEND | O_NONBLOCK | kLargeFile;
  constexpr int kForgotten = O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC;
  static_assert((kKept & kForgotten) == 0);
  if (opened.is_ours_alone && (opened.flags & ~(kKept | kForgotten)) == 0) {
    const int flags = (opened.flags & kKept) | kLargeFile;
    CAIRN_DCHECK(flags == sys::fcntl(opened.fd, F_GETFL));
    return flags;
  }
#endif
  return sys::fcntl(opened.fd, F_GETFL);
}

std::uint32_t withheld_of(std::uint32_t flags) {
  return OpenFile::withheld_flags(flags, (flags & O_ACCMODE) != O_RDONLY);
}

// The private descriptor must write at the offset we give, through the page cache: we do the
// appending and the alignment ourselves.
std::uint32_t take_over_flags(const Opened& opened) {
  const auto flags = static_cast<std::uint32_t>(status_flags(opened));
  const std::uint32_t withheld = withheld_of(flags);
  if (withheld != 0) sys::fcntl(opened.fd, F_SETFL, static_cast<long>(flags & ~withheld));
  return flags;
}

// Gives the application its plain descriptor back as it was opened.
void restore_flags(int fd, std::uint32_t flags) {
  if (withheld_of(flags) != 0) sys::fcntl(fd, F_SETFL, static_cast<long>(flags));
}

// Makes description and hold. False when a table is full.
bool describe(Actor& actor, OpenFile& file, std::uint32_t flags) {
  DescriptionTable& descriptions = actor.memory->descriptions();
  file.index = descriptions.create(file.object, flags);
  if (file.index == DescriptionIndex::kNone) return false;
  file.description = &descriptions.at(file.index);
  file.generation = file.description->generation.load(std::memory_order_acquire);
  file.description->error_seen.store(
      actor.object(file.object).error_sequence.load(std::memory_order_relaxed),
      std::memory_order_relaxed);
  file.hold = descriptions.hold(file.index, actor.self, HoldKind::kDescription);
  if (file.hold != HoldIndex::kNone) return true;
  descriptions.destroy(file.index);
  return false;
}

// The bytes that the file has by now were written past the log, and nobody knows whether they are
// safe.
void take_durability(Object& object, Durability level) {
  object.durability.store(level, std::memory_order_relaxed);
  if (object.store_size.load(std::memory_order_relaxed) != 0) object.note_store_owed();
}

// The latest open decides; the home that a policy has given the file stays while it is that
// policy's and no rule has one. Blocks of a part that the rules now leave unbuffered leave the
// buffer.
void take_handling(Actor& actor, OpenFile& file, ObjectHandling handling) {
  Object& object = actor.object(file.object);
  const ObjectHandling before = object.handling();
  const bool is_ruled = handling.home.has_value();
  const bool was_ruled = object.is_marked(kMarkHomeRuled);
  if (was_ruled != is_ruled) object.mark(kMarkHomeRuled, is_ruled);
  if (!is_ruled && !was_ruled && handling.policy == before.policy) handling.home = before.home;
  object.set_handling(handling);
  if (__builtin_expect(object.durability.load(std::memory_order_relaxed) != handling.durability, 0))
    take_durability(object, handling.durability);
  if (__builtin_expect(handling.parts == before.parts, 1)) return;
  const bool keeps_out = actor.memory->rules().parts().keeps_any_out(handling.parts);
  if (!keeps_out || object.blocks.load(std::memory_order_acquire) == 0) return;
  if (enter_through(access_of(actor, file)) == 0) leave_through(actor, file.object);
}

// Puts a placeholder in the place of the real descriptor, or leaves a real one there when the
// kernel gives none: then the record works on that. False: there is no number left for the file, or
// only one past the table's end, which has the real descriptor then.
bool place(Opened& opened, OpenFile& file) {
  const int private_fd = file.private_fd();
  const bool close_on_exec = (opened.flags & O_CLOEXEC) != 0;
  if (!opened.is_ours_alone) {
    if (place_placeholder(opened.fd, close_on_exec)) return true;
  } else {
    opened.fd = exchange_for_placeholder(opened.fd, private_fd, close_on_exec);
    if (opened.fd >= 0 && opened.fd < DescriptorTable::limit()) return true;
    if (opened.fd >= 0) sys::close(opened.fd);
    opened.fd = sys::fcntl(private_fd, close_on_exec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
    if (opened.fd < 0 || opened.fd >= DescriptorTable::limit()) return false;
  }
  PrivateDescriptors::remove(private_fd);
  sys::close(private_fd);
  file.work_on(opened.fd, static_cast<int>(file.flags()) & O_ACCMODE);
  return true;
}

// Turns the real descriptor into a buffered one, at perhaps another number. Returns null and leaves
// it alone when that is not possible; a number below 0 says that it is gone.
OpenFile* buffer_descriptor(Opened& opened, const StoreStatus& status, ObjectIndex known,
                            const ObjectHandling& handling) {
  CAIRN_DCHECK(opened.fd >= 0 && opened.fd < DescriptorTable::limit());
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return nullptr;
  OpenFile* file = OpenFilePool::take();
  if (file == nullptr) return nullptr;
  actor->count(Counter::kOpens, 1);
  const std::uint32_t flags = take_over_flags(opened);
  const int access_mode = static_cast<int>(flags & O_ACCMODE);
  // Replacing the real descriptor would drop this process's POSIX locks on the file: then it stays
  // where it is. So it does when the process has no numbers left.
  int private_fd = opened.fd;
  if (!PosixLocks::is_locked(known))
    private_fd = PrivateDescriptors::make(opened.fd, (opened.flags & O_CLOEXEC) != 0);
  if (private_fd < 0) private_fd = opened.fd;
  file->backing = new (file->backing_storage) PosixBacking(private_fd, access_mode);
  file->may_read = access_mode != O_WRONLY;
  file->may_write = access_mode != O_RDONLY;
  look_after_node();
  file->object = open_object(*actor, *file->backing, status, file->may_write, &Session::instance());
  bool is_ours = file->object != ObjectIndex::kNone;
  if (is_ours && !describe(*actor, *file, flags)) {
    close_object(access_of(*actor, *file), file->may_write);
    is_ours = false;
  }
  if (!is_ours) {
    discard_record(*file, opened.fd);
    restore_flags(opened.fd, flags);
    return nullptr;
  }
  if (private_fd != opened.fd && !place(opened, *file)) {
    (void)release_record(*file);
    discard_record(*file, opened.fd);
    if (opened.fd >= 0) restore_flags(opened.fd, flags);
    return nullptr;
  }
  CAIRN_DCHECK(file->index != DescriptionIndex::kNone && file->hold != HoldIndex::kNone);
  CAIRN_DCHECK(file->description->references.load(std::memory_order_relaxed) != 0);
  file->count.begin();
  if (file->private_fd() == opened.fd) PrivateDescriptors::note_file_in_place();
  if (withheld_of(flags) != 0) make_twin(*file, (opened.flags & O_CLOEXEC) != 0);
  if (file->may_write && is_guarded(file->private_fd(), status))
    actor->object(file->object).set(kObjectGuarded);
  note_direct_flag(*file);
  take_handling(*actor, *file, handling);
  tell_about(*actor, *file, AccessKind::kOpen);
  release_displaced(DescriptorTable::set(opened.fd, file), opened.fd);
  return file;
}

// Cuts a file that nothing is buffered of. A descriptor for reading cannot, and another open of the
// file, when closed, would cost the process its locks.
int cut_again(int fd) {
  const int error = sys::truncate(DescriptorPath(fd).text, 0);
  struct ::statx status;
  if (error != -EACCES || sys::statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &status) < 0) return error;
  // The open may have made the file: to cut a new one it needs no right to write.
  return status.stx_size == 0 ? 0 : error;
}

// A file that the rules leave unbuffered may still have blocks in the buffer, from before the rule:
// they go to the store first. While another process has it open as a buffered file, all have. After
// open(O_RDONLY | O_TRUNC) has cut the file, this cuts those bytes away as well.
bool can_bypass(Session& session, ObjectIndex known, int fd, int flags) {
  if (known == ObjectIndex::kNone) return true;
  const Object& object = session.memory().objects().at(known);
  if (object.opens.load(std::memory_order_acquire) != 0) return false;
  const auto is_stored = [&object] {
    return object.dirty_blocks.load(std::memory_order_acquire) == 0 &&
           !object.has(kObjectTimesDirty);
  };
  if (is_stored()) return true;
  if (session.request_flush(known, false) != 0 || !is_stored()) return false;
  const bool is_cut = (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) == O_RDONLY;
  return !is_cut || cut_again(fd) == 0;
}

// Leaves to the kernel a file that this process must not buffer, whatever others do. If the kernel
// has cut it at the open, it stays cut, although its blocks have gone to the store since. 0 or
// -errno.
int leave_to_kernel(int fd, int flags, const StoreStatus& status, ObjectIndex known) {
  const int error = KernelFiles::share(fd, status, known);
  if ((flags & O_TRUNC) != 0 && (flags & O_ACCMODE) == O_RDONLY) (void)cut_again(fd);
  return error;
}

// Leaves to the kernel a file that this process cannot have buffered, for as long as the process
// may have it open. 0, or -EIO: the program must not use it at all.
int keep_past_buffers(int fd, int flags) {
  Session& session = Session::instance();
  const int error = session.is_attached()
                        ? session.keep_through(fd, protocol::UnservedReason::kTableFull)
                        : session.use_unserved(fd);
  if (error < 0) return error;
  // The kernel has cut it already, but dirty blocks have gone to the store since.
  const bool is_cut = (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) == O_RDONLY;
  return is_cut ? cut_again(fd) : 0;
}

// The same for what a vfork child opens: it must not get into the table, which is its parent's,
// also where the parent has a file at that number. 0 or -errno.
int keep_for_child(const Opened& opened, const StoreStatus& status) {
  const int access_mode = opened.flags & O_ACCMODE;
  VforkShadow::note(opened.fd, nullptr);
  Session& session = Session::instance();
  if (session.keep_through(opened.fd, protocol::UnservedReason::kNone) < 0) {
    // A child may be unable to ask, by another user or root, and the node may have ended.
    Actor* const actor = session.actor_if_any();
    if (actor == nullptr) return -EIO;
    PosixBacking backing(opened.fd, access_mode);
    const ObjectIndex index =
        open_object(*actor, backing, status, access_mode != O_RDONLY, &session);
    if (index == ObjectIndex::kNone) return -EIO;
    const ObjectAccess access(*actor, index, backing, session);
    const int entered = enter_through_for_good(access);
    const int closed = close_object(access, access_mode != O_RDONLY);
    if (entered < 0) return entered;
    if (closed < 0) return closed;
  }
  const bool is_cut = (opened.flags & O_TRUNC) != 0 && access_mode == O_RDONLY;
  return is_cut ? cut_again(opened.fd) : 0;
}

// Buffers the file if it is managed; null when it is not, or when `*error` says why it cannot be.
OpenFile* look_at(Opened& opened, int* error, StoreStatus* seen = nullptr) {
  *error = 0;
  const int fd = opened.fd;
  const int flags = opened.flags;
  Session& session = Session::instance();
  const std::uint32_t reclaims = session.has_memory() ? session.memory().objects().reclaims() : 0;
  struct ::statx raw;
  if (sys::statx(fd, "", AT_EMPTY_PATH, kCandidateMask, &raw) < 0) return nullptr;
  StoreStatus status = to_store_status(raw);
  status.stamp.reclaims = reclaims;
  if (seen != nullptr) *seen = status;
  ObjectIndex known = ObjectIndex::kNone;
  if (!is_candidate(fd, raw, status.key, &known) &&
      !must_be_buffered_after_all(raw, status.key, &known)) {
    return nullptr;
  }
  if (!session.attach()) {
    *error = keep_past_buffers(fd, flags);
    return nullptr;
  }
  if (__builtin_expect(session.memory().objects().at(known).is_in_trouble(kOwedByLog), 0)) {
    *error = -EIO;
    return nullptr;
  }
  if (is_vfork_child()) {
    *error = keep_for_child(opened, status);
    return nullptr;
  }
  if (__builtin_expect(KernelFiles::has_everything(), 0)) {
    *error = leave_to_kernel(fd, flags, status, known);
    return nullptr;
  }
  // The kernel alone can append to such a file, and a descriptor of it cannot do anything else.
  if ((raw.stx_attributes & STATX_ATTR_APPEND) != 0 && (flags & O_ACCMODE) != O_RDONLY) {
    *error = KernelFiles::share(fd, status, known);
    return nullptr;
  }
  ObjectHandling handling = FileHandling::of(session.memory(), fd, raw.stx_size, flags);
  if (handling.mode == BufferingMode::kBypass) {
    if (can_bypass(session, known, fd, flags)) {
      *error = KernelFiles::share(fd, status, known);
      return nullptr;
    }
    handling.mode = BufferingMode::kAsync;
  }
  OpenFile* file = nullptr;
  if (fd < DescriptorTable::limit()) file = buffer_descriptor(opened, status, known, handling);
  // A table is full: then everybody works on the file through the kernel.
  if (file == nullptr) *error = opened.fd < 0 ? opened.fd : keep_past_buffers(opened.fd, flags);
  return file;
}

// Only a regular file can be cut; for everything else the kernel ignores O_TRUNC. `file` as for
// truncate_opened().
int cut_by_kernel(int fd, const OpenFile* file) {
  const int error = sys::ftruncate(fd, 0);
  struct ::statx status;
  if (error != -EINVAL || sys::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &status) < 0) return error;
  if (S_ISDIR(status.stx_mode)) return -EISDIR;
  if (!S_ISREG(status.stx_mode)) return 0;
  // The tiers may have bytes of a file that is empty in the store.
  const bool is_empty =
      file == nullptr || Session::instance().memory().objects().at(file->object).size.load() == 0;
  return is_empty ? cut_again(fd) : sys::truncate(DescriptorPath(fd).text, 0);
}

// open(O_RDONLY | O_TRUNC): the kernel has cut the backing file already, and the buffer follows. An
// open that fails here is better than one that succeeds beside the old bytes.
int follow_truncation(OpenFile& file) {
  Actor* actor = Session::instance().actor_if_any();
  return actor == nullptr ? -EIO : truncate_object(access_of(*actor, file), 0);
}

// True for an empty file that was made at `since` or later and not touched again: cutting it would
// change nothing, nor does the kernel cut what it has just made.
bool is_fresh(const OpenFile& file, const StoreStatus& status, std::int64_t since) {
  const StoreStamp& stamp = status.stamp;
  const std::int64_t birth = status.key.id.birth_ns;
  // The clock of the file system may be another one than ours: then nothing is known.
  if (birth < since || birth > wall_clock_ns() || stamp.size != 0 || stamp.mtime_ns != birth ||
      stamp.ctime_ns != birth) {
    return false;
  }
  const Object& object = Session::instance().memory().objects().at(file.object);
  return object.size.load(std::memory_order_acquire) == 0 &&
         object.through.load(std::memory_order_acquire) == 0;
}

}  // namespace

int open_managed(int directory, const char* path, int flags, mode_t mode) {
  const bool looks = Session::instance().is_configured() && !is_never_buffered(flags);
  const bool truncates = looks && truncates_later(flags);
  const int saved = errno;
  const std::int64_t began_ns = truncates ? wall_clock_coarse_ns() : 0;
  const OpeningGuard opening(opening_actor(directory, path, flags));
  const int asked = truncates ? flags & ~O_TRUNC : flags;
  const int fd = real_openat(directory, path, asked, mode);
  if (fd < 0) return -errno;
  errno = saved;
  if ((flags & O_PATH) != 0 && Session::instance().is_configured()) note_path_descriptor(fd);
  if (!looks) return fd;
  StoreStatus status;
  int error = 0;
  Opened opened{.fd = fd, .flags = asked, .is_ours_alone = true};
  OpenFile* file = look_at(opened, &error, &status);
  if (__builtin_expect(error < 0, 0)) {
    if (opened.fd >= 0) sys::close(opened.fd);
    return error;
  }
  if ((flags & O_TRUNC) == 0) return opened.fd;
  const bool is_new = truncates && file != nullptr && (flags & O_CREAT) != 0;
  if (is_new && is_fresh(*file, status, began_ns)) return opened.fd;
  return truncate_opened(opened.fd, file, !truncates);
}

bool truncates_later(int flags) {
  if ((flags & O_TRUNC) == 0 || is_never_buffered(flags)) return false;
  if ((flags & O_ACCMODE) != O_RDONLY) return true;
  Session& session = Session::instance();
  return session.is_configured() && !session.attach() && session.is_blind();
}

int truncate_opened(int fd, OpenFile* file, bool is_cut) {
  CAIRN_DCHECK(fd >= 0);
  int error = 0;
  if (file != nullptr && file->may_write && !is_cut) {
    error = file_truncate(*file, 0);
  } else {
    if (!is_cut) error = cut_by_kernel(file != nullptr ? file->private_fd() : fd, file);
    if (error == 0 && file != nullptr) error = follow_truncation(*file);
  }
  if (error == 0) return fd;
  if (file != nullptr) {
    close_tracked(fd);
  } else {
    sys::close(fd);
  }
  return error;
}

int manage_opened(int fd, int flags) {
  int error = 0;
  Opened opened{.fd = fd, .flags = flags, .is_ours_alone = false};
  if (Session::instance().is_configured() && !is_never_buffered(flags)) look_at(opened, &error);
  CAIRN_DCHECK(opened.fd == fd);
  return error;
}

}  // namespace cairn
