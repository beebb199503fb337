// SPDX-License-Identifier: Apache-2.0
#include "frontends/common/open_file.h"

#include <elf.h>
#include <errno.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/descriptor_path.h"
#include "base/system_call.h"
#include "frontends/client/opening_guard.h"
#include "frontends/common/descriptor_table.h"
#include "frontends/common/direct_io.h"
#include "frontends/common/file_handling.h"
#include "frontends/common/file_io.h"
#include "frontends/common/guard_change.h"
#include "frontends/common/kernel_aio.h"
#include "frontends/common/kernel_files.h"
#include "frontends/common/mappings.h"
#include "frontends/common/open_file_pool.h"
#include "frontends/common/path_filter.h"
#include "frontends/common/posix_locks.h"
#include "frontends/common/private_descriptors.h"
#include "frontends/common/real_calls.h"
#include "frontends/common/unheld_files.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

// Through libc and not by our own system call: open() is a cancellation point, and may wait
// (FIFOs).
constinit RealCall<int(int, const char*, int, ...)> real_openat{"openat64"};

constexpr unsigned kStatusMask = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID;

std::int64_t to_nanos(const statx_timestamp& time) {
  return time.tv_sec * kNanosPerSecond + time.tv_nsec;
}

StoreStatus to_store_status(const struct ::statx& raw) {
  StoreStatus status;
  status.key.device = makedev(raw.stx_dev_major, raw.stx_dev_minor);
  status.key.inode = raw.stx_ino;
  status.key.birth_ns = (raw.stx_mask & STATX_BTIME) != 0 ? to_nanos(raw.stx_btime) : 0;
  status.stamp.size = raw.stx_size;
  status.stamp.mtime_ns = to_nanos(raw.stx_mtime);
  status.stamp.ctime_ns = to_nanos(raw.stx_ctime);
  status.mode = raw.stx_mode;
  status.links = raw.stx_nlink;
  status.attributes = raw.stx_attributes;
  return status;
}

constinit std::atomic<bool> in_place_seen{false};

// The private descriptor must write where it is told and buffered: appending and alignment are ours
// to do.
std::uint32_t take_over_flags(int fd) {
  const int flags = sys::fcntl(fd, F_GETFL);
  if ((flags & (O_APPEND | O_DIRECT)) != 0) sys::fcntl(fd, F_SETFL, flags & ~(O_APPEND | O_DIRECT));
  return static_cast<std::uint32_t>(flags);
}

// Gives the application its plain descriptor back as it was opened.
void restore_flags(int fd, std::uint32_t flags) {
  if ((flags & (O_APPEND | O_DIRECT)) != 0) sys::fcntl(fd, F_SETFL, static_cast<long>(flags));
}

// The dynamic linker reads a library through the kernel and asks nobody before: what has just been
// linked is stored when its writer closes it. Object files, of which a build writes many more, are
// read by programs that are intercepted.
void store_if_loadable(Actor& actor, OpenFile& file) {
  const Object& object = actor.object(file.object);
  if (!file.may_write || object.dirty_blocks.load(std::memory_order_relaxed) == 0 ||
      object.has(kObjectUnlinked)) {
    return;
  }
  unsigned char head[sizeof(Elf64_Ehdr::e_ident) + sizeof(Elf64_Ehdr::e_type)];
  ObjectAccess access = access_of(actor, file);
  access.stream = DescriptionIndex::kNone;  // the program reads nothing
  if (read_object(access, 0, head, sizeof head) != static_cast<ssize_t>(sizeof head)) return;
  const bool is_loadable = head[EI_NIDENT] == ET_EXEC || head[EI_NIDENT] == ET_DYN;
  if (is_loadable && std::memcmp(head, ELFMAG, SELFMAG) == 0) sync_object(access, false, nullptr);
}

// The locks of a description that is about to go. Ours is its last descriptor but for one that may
// be on its way to the service. (Without that it is the kernel's business.) A mapping too keeps a
// description, and its locks, alive: then the one on its way has to arrive before ours is closed.
void drop_own_locks(const Actor& actor, const OpenFile& file) {
  Session& session = Session::instance();
  if (!session.has_lent_descriptor()) return;
  if ((file.description->flags.load(std::memory_order_relaxed) & kHasOwnLocks) == 0) return;
  if (Mappings::any() && actor.object(file.object).through.load() != 0) {
    session.await_arrivals();
    return;
  }
  struct flock everything{};
  everything.l_type = F_UNLCK;
  sys::call(SYS_flock, file.private_fd(), LOCK_UN);
  sys::call(SYS_fcntl, file.private_fd(), F_OFD_SETLK, sys::word(&everything));
}

// The process's hold on its description, and everything that hangs on it, is gone after this.
int release_record(OpenFile& file) {
  int result = 0;
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor != nullptr) {
    store_if_loadable(*actor, file);
    DescriptionTable& descriptions = session.memory().descriptions();
    if (descriptions.release(file.hold, actor->self).last) {
      tell_about(*actor, file, AccessKind::kClose);
      result = close_object(access_of(*actor, file), file.may_write);
      drop_own_locks(*actor, file);
      descriptions.destroy(file.index);
    }
  }
  return result;
}

void drop_private(OpenFile& file, int placeholder) {
  file.backing->close_extra();
  const int fd = file.private_fd();
  if (fd == placeholder) return;
  PrivateDescriptors::remove(fd);
  sys::close(fd);
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

bool is_candidate(int fd, const struct ::statx& raw, const StoreStatus& status,
                  ObjectIndex* known) {
  if (!S_ISREG(raw.stx_mode)) return false;
  PathFilter::resolve();
  Session& session = Session::instance();
  if (session.attach() && session.memory().objects().live_count() > 0) {
    *known = session.memory().objects().find(status.key);
    if (*known != ObjectIndex::kNone) return true;
  }
  // A process that does not see the table of objects cannot tell whether another name of the file
  // is a managed one.
  if (session.standing() == Standing::kUnserved && raw.stx_nlink > 1) return true;
  const std::uint64_t mount = (raw.stx_mask & STATX_MNT_ID) != 0 ? raw.stx_mnt_id : 0;
  if (mount != 0 && !PathFilter::may_manage_mount(mount)) return false;
  return PathFilter::manages(fd);
}

// The latest open decides; the home that a policy has given the file stays while it is that
// policy's and no rule has one. What is in the buffer of a part that is not to be buffered any more
// leaves it.
void take_handling(Actor& actor, OpenFile& file, ObjectHandling handling) {
  Object& object = actor.object(file.object);
  const ObjectHandling before = object.handling();
  const bool is_ruled = handling.home.has_value();
  const bool was_ruled = object.mark(kMarkHomeRuled, is_ruled);
  if (!is_ruled && !was_ruled && handling.policy == before.policy) handling.home = before.home;
  object.set_handling(handling);
  if (__builtin_expect(handling.parts == before.parts, 1)) return;
  const bool keeps_out = actor.memory->rules().parts().keeps_any_out(handling.parts);
  if (!keeps_out || object.blocks.load(std::memory_order_acquire) == 0) return;
  if (enter_through(access_of(actor, file)) == 0) leave_through(actor, file.object);
}

// Turns the real descriptor `fd` into a buffered one. Returns null and leaves `fd` alone when that
// is not possible.
OpenFile* buffer_descriptor(int fd, bool close_on_exec, const StoreStatus& status,
                            ObjectIndex known, const ObjectHandling& handling) {
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return nullptr;
  OpenFile* file = OpenFilePool::take();
  if (file == nullptr) return nullptr;
  actor->count(Counter::kOpens, 1);
  const std::uint32_t flags = take_over_flags(fd);
  const int access_mode = static_cast<int>(flags & O_ACCMODE);
  // Replacing the real descriptor would drop this process's POSIX locks on the file: then it stays
  // where it is. So it does when the process has no numbers left.
  int private_fd = fd;
  if (!PosixLocks::is_locked(known)) private_fd = PrivateDescriptors::make(fd, close_on_exec);
  if (private_fd < 0) private_fd = fd;
  file->backing = new (file->backing_storage) BackingFile(private_fd, access_mode);
  file->may_read = access_mode != O_WRONLY;
  file->may_write = access_mode != O_RDONLY;
  file->object = open_object(*actor, *file->backing, status, file->may_write, &Session::instance());
  bool is_ours = file->object != ObjectIndex::kNone;
  if (is_ours && !describe(*actor, *file, flags)) {
    close_object(access_of(*actor, *file), file->may_write);
    is_ours = false;
  }
  if (is_ours && private_fd != fd && !place_placeholder(fd, close_on_exec)) {
    PrivateDescriptors::remove(private_fd);
    sys::close(private_fd);
    new (file->backing_storage) BackingFile(fd, access_mode);
  }
  if (!is_ours) {
    drop_private(*file, fd);
    restore_flags(fd, flags);
    OpenFilePool::give_back(file);
    return nullptr;
  }
  file->descriptors.store(1, std::memory_order_relaxed);
  if (file->private_fd() == fd) in_place_seen.store(true, std::memory_order_relaxed);
  if (file->may_write && is_guarded(private_fd, status))
    actor->object(file->object).set(kObjectGuarded);
  note_direct_flag(*file);
  take_handling(*actor, *file, handling);
  tell_about(*actor, *file, AccessKind::kOpen);
  DescriptorTable::set(fd, file);
  return file;
}

// A file that is not to be buffered may still have something in the buffer, from before the rule:
// that is stored first. While others have it open as a buffered file, all have. What is stored
// after open(O_RDONLY | O_TRUNC) has cut the file is cut away as well.
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
  return !is_cut || sys::truncate(DescriptorPath(fd).text, 0) == 0;
}

// A file that this process must not buffer, whatever others do. What the kernel has cut at the open
// stays cut, although what was in the buffer has been stored since. 0 or -errno.
int leave_to_kernel(int fd, int flags, const StoreStatus& status, ObjectIndex known) {
  const int error = KernelFiles::share(fd, status, known);
  if ((flags & O_TRUNC) != 0 && (flags & O_ACCMODE) == O_RDONLY)
    sys::truncate(DescriptorPath(fd).text, 0);
  return error;
}

// A file that this process cannot have buffered: it is the kernel's for as long as it may have it
// open, or must not be used at all. 0 or -EIO.
int keep_past_buffers(int fd, int flags) {
  Session& session = Session::instance();
  const int error = session.is_attached()
                        ? session.keep_through(fd, protocol::UnservedReason::kTableFull)
                        : session.use_unserved(fd);
  if (error < 0) return error;
  // The kernel has cut it already, but what was dirty then has been stored since.
  const bool is_cut = (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) == O_RDONLY;
  return is_cut ? sys::truncate(DescriptorPath(fd).text, 0) : 0;
}

OpenFile* look_at(int fd, int flags, int* error, StoreStatus* seen = nullptr) {
  *error = 0;
  struct ::statx raw;
  if (sys::statx(fd, "", AT_EMPTY_PATH, kStatusMask, &raw) < 0) return nullptr;
  const StoreStatus status = to_store_status(raw);
  if (seen != nullptr) *seen = status;
  ObjectIndex known = ObjectIndex::kNone;
  if (!is_candidate(fd, raw, status, &known)) return nullptr;
  Session& session = Session::instance();
  if (!session.attach()) {
    *error = keep_past_buffers(fd, flags);
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
  if (fd < DescriptorTable::limit())
    file = buffer_descriptor(fd, (flags & O_CLOEXEC) != 0, status, known, handling);
  // A table is full: then everybody works on the file through the kernel.
  if (file == nullptr) *error = keep_past_buffers(fd, flags);
  return file;
}

// open(O_RDONLY | O_TRUNC): the kernel has cut the backing file already, the buffer follows through
// a descriptor that may write.
void follow_truncation(OpenFile& file, int fd) {
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return;
  const int writable = sys::openat(AT_FDCWD, DescriptorPath(fd).text, O_WRONLY | O_CLOEXEC);
  if (writable < 0) return;
  BackingFile backing(writable, O_WRONLY);
  (void)truncate_object(ObjectAccess{*actor, file.object, backing, Session::instance()}, 0);
  backing.close_extra();
  if (!PosixLocks::keeps_open(file.object, writable)) sys::close(writable);
}

// Whether an open of this path would give a managed file. Asked only by a process that has not
// attached yet.
bool may_be_managed(int directory, const char* path) {
  struct ::statx raw;
  if (path == nullptr || sys::statx(directory, path, 0, STATX_TYPE | STATX_MNT_ID, &raw) < 0 ||
      !S_ISREG(raw.stx_mode)) {
    return false;
  }
  PathFilter::resolve();
  if ((raw.stx_mask & STATX_MNT_ID) != 0 && !PathFilter::may_manage_mount(raw.stx_mnt_id))
    return false;
  const int fd = sys::openat(directory, path, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  const bool is_managed = PathFilter::manages(fd);
  sys::close(fd);
  return is_managed;
}

// True for an empty file that was made at `since` or later and not touched again: cutting it would
// change nothing, nor does the kernel cut what it has just made.
bool is_fresh(const OpenFile& file, const StoreStatus& status, std::int64_t since) {
  const StoreStamp& stamp = status.stamp;
  const std::int64_t birth = status.key.birth_ns;
  // The clock of the file system may be another one than ours: then nothing is known.
  if (birth < since || birth > wall_clock_ns() || stamp.size != 0 || stamp.mtime_ns != birth ||
      stamp.ctime_ns != birth) {
    return false;
  }
  const Object& object = Session::instance().memory().objects().at(file.object);
  return object.size.load(std::memory_order_acquire) == 0 &&
         object.through.load(std::memory_order_acquire) == 0;
}

bool is_never_buffered(int flags) {
  if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_ACCMODE) return true;
  return (flags & O_DIRECTORY) != 0 && (flags & O_TMPFILE) != O_TMPFILE;
}

}  // namespace

bool place_placeholder(int fd, bool close_on_exec) {
  // open_tree() without cloning gives the descriptor at once; some containers refuse it, then
  // /proc has to serve.
  auto placeholder = static_cast<int>(
      sys::call(SYS_open_tree, fd, sys::word(""), AT_EMPTY_PATH | OPEN_TREE_CLOEXEC));
  if (placeholder < 0) {
    placeholder = sys::openat(AT_FDCWD, DescriptorPath(fd).text, O_PATH | O_CLOEXEC);
  }
  if (placeholder < 0) return false;
  const bool placed = sys::dup3(placeholder, fd, close_on_exec ? O_CLOEXEC : 0) >= 0;
  sys::close(placeholder);
  return placed;
}

void note_path_descriptor(int fd) {
  struct ::statx raw;
  ObjectIndex known = ObjectIndex::kNone;
  if (sys::statx(fd, "", AT_EMPTY_PATH, kStatusMask, &raw) < 0) return;
  if (!is_candidate(fd, raw, to_store_status(raw), &known)) return;
  Session& session = Session::instance();
  if (session.attach()) session.memory().header().path_descriptors.store(1);
}

bool has_files_in_place() { return in_place_seen.load(std::memory_order_relaxed); }

bool may_be_buffered(const char* path) {
  if (!Session::instance().is_attached()) return may_be_managed(AT_FDCWD, path);
  const int fd = sys::openat(AT_FDCWD, path, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  struct ::statx raw;
  ObjectIndex known = ObjectIndex::kNone;
  const bool is_it = sys::statx(fd, "", AT_EMPTY_PATH, kStatusMask, &raw) >= 0 &&
                     is_candidate(fd, raw, to_store_status(raw), &known);
  sys::close(fd);
  return is_it;
}

const Actor* opening_actor(int directory, const char* path, int flags) {
  Session& session = Session::instance();
  if (!session.is_configured() || is_never_buffered(flags)) return nullptr;
  if (session.is_attached()) return session.actor_if_any();
  const bool is_new = (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0;
  return !is_new && may_be_managed(directory, path) ? session.actor_if_any() : nullptr;
}

void tell_about(Actor& actor, OpenFile& file, AccessKind kind, std::uint64_t offset,
                std::uint64_t length, int advice) {
  const NodeMemory& memory = *actor.memory;
  const std::uint32_t wanted = memory.header().events_wanted.load(std::memory_order_relaxed);
  if (wanted < (file.may_read ? ControlHeader::kEventsOfReads : ControlHeader::kEventsOfWrites))
    return;
  AccessEvent event;
  event.offset = offset;
  event.cycles = cycle_count();
  event.object = file.object;
  event.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, UINT32_MAX));
  event.stream = file.index;
  event.descriptor = file.private_fd();
  event.kind = kind;
  event.advice = static_cast<std::uint8_t>(advice);
  const Object& object = actor.object(file.object);
  if (kind == AccessKind::kOpen) {
    event.is_urgent = memory.header().opens_are_urgent.load(std::memory_order_relaxed) != 0 ||
                      object.handling().prefetch == PrefetchHint::kWillNeed;
  } else if (kind == AccessKind::kClose) {
    event.is_urgent = object.is_marked(kMarkFetchedFrom);
  }
  event.owner = actor.self;
  memory.tell(event);
}

int open_managed(int directory, const char* path, int flags, mode_t mode) {
  const bool looks = Session::instance().is_configured() && !is_never_buffered(flags);
  // Truncating waits until it is known whether the file is buffered; without the right to write it
  // cannot.
  const bool truncates = looks && (flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != O_RDONLY;
  const int saved = errno;
  const std::int64_t began_ns = truncates ? wall_clock_coarse_ns() : 0;
  const OpeningGuard opening(opening_actor(directory, path, flags));
  const int fd = real_openat(directory, path, truncates ? flags & ~O_TRUNC : flags, mode);
  if (fd < 0) return -errno;
  errno = saved;
  if ((flags & O_PATH) != 0 && Session::instance().is_configured()) note_path_descriptor(fd);
  if (!looks) return fd;
  StoreStatus status;
  int error = 0;
  OpenFile* file = look_at(fd, flags, &error, &status);
  if (__builtin_expect(error < 0, 0)) {
    sys::close(fd);
    return error;
  }
  if (!truncates) {
    if ((flags & O_TRUNC) != 0 && file != nullptr) follow_truncation(*file, fd);
    return fd;
  }
  if (file != nullptr && (flags & O_CREAT) != 0 && is_fresh(*file, status, began_ns)) return fd;
  return truncate_opened(fd, file);
}

int truncate_opened(int fd, OpenFile* file) {
  const int error = file != nullptr ? file_truncate(*file, 0) : sys::ftruncate(fd, 0);
  // Only a regular file can be cut; for everything else the kernel ignores the flag.
  if (error == 0 || (file == nullptr && error == -EINVAL)) return fd;
  if (file != nullptr) {
    close_tracked(fd);
  } else {
    sys::close(fd);
  }
  return error;
}

int manage_opened(int fd, int flags) {
  int error = 0;
  if (Session::instance().is_configured() && !is_never_buffered(flags)) look_at(fd, flags, &error);
  return error;
}

namespace {

// At a number that the table has no entry for, the file is the kernel's, for all who share it.
void leave_untracked(int fd, OpenFile& file) {
  (void)share_unheld(file);
  become_plain(fd, file);
  (void)release_record(file);
  drop_private(file, fd);
  OpenFilePool::give_back(&file);
}

}  // namespace

OpenFile* adopt(int fd, DescriptionIndex index, std::uint32_t generation, int private_fd,
                HoldIndex hold) {
  Session& session = Session::instance();
  if (!session.is_attached() || fd < 0) return nullptr;
  DescriptionTable& descriptions = session.memory().descriptions();
  if (raw(index) == 0 || raw(index) >= descriptions.capacity()) return nullptr;
  OpenDescription& description = descriptions.at(index);
  if (description.generation.load(std::memory_order_acquire) != generation) return nullptr;
  OpenFile* file = OpenFilePool::take();
  if (file == nullptr) return nullptr;
  const int access_mode =
      static_cast<int>(description.flags.load(std::memory_order_relaxed) & O_ACCMODE);
  file->description = &description;
  file->object = static_cast<ObjectIndex>(description.object.load(std::memory_order_acquire));
  file->may_read = access_mode != O_WRONLY;
  file->may_write = access_mode != O_RDONLY;
  file->backing = new (file->backing_storage) BackingFile(private_fd, access_mode);
  file->index = index;
  file->generation = generation;
  file->hold = hold;
  note_direct_flag(*file);
  file->descriptors.store(1, std::memory_order_relaxed);
  if (private_fd != fd) {
    PrivateDescriptors::add(private_fd);
  } else {
    in_place_seen.store(true, std::memory_order_relaxed);
  }
  if (__builtin_expect(fd >= DescriptorTable::limit(), 0)) {
    leave_untracked(fd, *file);
    return nullptr;
  }
  DescriptorTable::set(fd, file);
  return file;
}

void adopt_again(int fd, OpenFile* file) {
  if (__builtin_expect(fd >= DescriptorTable::limit(), 0)) {
    (void)share_unheld(*file);
    return become_plain(fd, *file);
  }
  file->descriptors.fetch_add(1, std::memory_order_relaxed);
  DescriptorTable::set(fd, file);
}

void note_duplicate(OpenFile& file, int to, bool close_on_exec) {
  adopt_again(to, &file);
  if (to >= DescriptorTable::limit()) return;
  // The real descriptor may be one of the application's own, whose flag is not ours to change.
  const bool is_private = PrivateDescriptors::is_private(file.private_fd());
  if (!close_on_exec && is_private) sys::fcntl(file.private_fd(), F_SETFD, 0);
}

void update_close_on_exec(OpenFile& file) {
  if (!PrivateDescriptors::is_private(file.private_fd())) return;
  bool survives = false;
  DescriptorTable::for_each([&](int fd, OpenFile& other) {
    if (&other != &file) return;
    const int flags = sys::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) survives = true;
  });
  sys::fcntl(file.private_fd(), F_SETFD, survives ? 0 : FD_CLOEXEC);
}

namespace {

void drop_locks(const OpenFile& file) {
  const ObjectIndex object = file.object;
  PosixLocks::drop(object, file.private_fd());
  for (int fd; (fd = PosixLocks::take_kept(object)) >= 0;) close_tracked(fd);
}

}  // namespace

int forget_tracked(int fd) {
  OpenFile* file = DescriptorTable::take(fd);
  if (file == nullptr) return -EBADF;
  if (PosixLocks::is_locked(file->object)) drop_locks(*file);
  if (file->descriptors.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    const int result = release_record(*file);
    drop_private(*file, fd);
    OpenFilePool::give_back(file);
    return result;
  }
  if (file->private_fd() != fd) return 0;
  // The real descriptor that the record works on goes away while duplicates stay: it moves to one
  // of them.
  const int access_mode = static_cast<int>(file->flags() & O_ACCMODE);
  const int moved = PrivateDescriptors::make(fd, true);
  if (moved >= 0) new (file->backing_storage) BackingFile(moved, access_mode);
  update_close_on_exec(*file);
  return 0;
}

int close_tracked(int fd) {
  const int result = forget_tracked(fd);
  if (result == -EBADF && DescriptorTable::find(fd) == nullptr) {
    return sys::close(fd);  // another thread was faster: the kernel knows what the number is now
  }
  const int closed = sys::close(fd);
  return result < 0 ? result : closed;
}

HoldIndex hold_if_live(DescriptionIndex index, std::uint32_t generation) {
  Session& session = Session::instance();
  DescriptionTable& descriptions = session.memory().descriptions();
  OpenDescription& record = descriptions.at(index);
  // Only a record with a holder can get another one: a free record's next user counts it anew.
  std::uint32_t seen = record.references.load(std::memory_order_acquire);
  while (seen != 0 && !record.references.compare_exchange_weak(seen, seen + 1)) {
  }
  if (seen == 0) return HoldIndex::kNone;
  HoldIndex made = HoldIndex::kNone;
  if (record.generation.load(std::memory_order_acquire) == generation)
    made = descriptions.hold(index, session.self(), HoldKind::kDescription);
  if (record.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return made;
  // It is another one by now, and all others have let go of it in the meantime.
  const auto object = static_cast<ObjectIndex>(record.object.load());
  const bool may_write = (record.flags.load() & O_ACCMODE) != O_RDONLY;
  descriptions.destroy(index);
  abandon_object(*session.actor_if_any(), object, may_write);
  return HoldIndex::kNone;
}

namespace {

// The hold that the parent made, or one of our own while the description still is what it was.
HoldIndex take_over_hold(OpenFile& file, Owner parent, Owner self) {
  DescriptionTable& descriptions = Session::instance().memory().descriptions();
  const HoldIndex transit = std::exchange(file.transit, HoldIndex::kNone);
  if (transit != HoldIndex::kNone && descriptions.transfer(transit, parent, self, file.index))
    return transit;
  return hold_if_live(file.index, file.generation);
}

// The description is not ours to use.
void give_up(int fd, OpenFile& file) {
  become_plain(fd, file);
  DescriptorTable::take(fd);
  if (file.descriptors.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  drop_private(file, fd);
  OpenFilePool::give_back(&file);
}

}  // namespace

void take_over_holds(Owner parent) {
  Session& session = Session::instance();
  const DescriptionTable& descriptions = session.memory().descriptions();
  const Owner self = session.self();
  DescriptorTable::for_each([&](int fd, OpenFile& file) {
    // Each record once: a hold that names this process already has been taken over.
    if (file.hold != HoldIndex::kNone && descriptions.view(file.hold).owner == self) return;
    const bool is_shared = file.transit == HoldIndex::kNone && file.is_kept_through;
    file.hold = is_shared ? HoldIndex::kNone : take_over_hold(file, parent, self);
    if (file.hold == HoldIndex::kNone) give_up(fd, file);
  });
  KernelAio::begin_process();
  Mappings::count_again();
  KernelFiles::count_again();
}

}  // namespace cairn
