// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/file_closing.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include <cstring>
#include <new>

#include "base/check.h"
#include "base/descriptor_path.h"
#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file_pool.h"
#include "frontends/descriptors/placeholder.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/descriptors/reading_descriptor.h"
#include "frontends/files/mappings.h"
#include "frontends/files/offset_guard.h"
#include "frontends/files/orphaned_node.h"
#include "frontends/files/transit_holds.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

// The dynamic linker reads a library through the kernel without a word to us, so a file that has
// just been linked goes to the store when its writer closes it. Object files, of which a build
// writes many more, have readers that are intercepted.
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

// Ends the locks of a description that is about to go. Ours is its last descriptor but for one that
// may be on its way to the service. (Without that one the kernel ends them.) A mapping too keeps a
// description, and its locks, alive: then the one on its way has to arrive before ours closes.
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
  sys::call(SYS_flock, file.shared_fd(), LOCK_UN);
  sys::call(SYS_fcntl, file.shared_fd(), F_OFD_SETLK, sys::word(&everything));
}

void drop_private(OpenFile& file, int placeholder) {
  file.backing->close_extra();
  for (const int fd : file.real_fds()) {
    if (fd < 0 || fd == placeholder) continue;
    PrivateDescriptors::remove(fd);
    sys::close(fd);
  }
  file.twin_fd = -1;
}

// Descriptors that read for other records of a file that was locked may be duplicates: they would
// keep the description that closes, and its locks, alive. Another description comes in their place,
// under the same numbers, which other threads may be reading from.
void renew_readers(ObjectIndex object) {
  DescriptorTable::for_each([object](int, OpenFile& file) {
    const int reader = file.object == object ? file.backing->extra_fd() : -1;
    if (reader < 0) return;
    const int opened = sys::openat(AT_FDCWD, DescriptorPath(reader).text, O_RDONLY | O_CLOEXEC);
    if (opened < 0) return;
    sys::dup3(opened, reader, O_CLOEXEC);
    sys::close(opened);
  });
}

void drop_locks(const OpenFile& file) {
  const ObjectIndex object = file.object;
  PosixLocks::drop(object, file.private_fd());
  for (int fd; (fd = PosixLocks::take_kept(object)) >= 0;) {
    PrivateDescriptors::remove(fd);
    close_tracked(fd);  // a spawn opens files of its child as a program does
  }
  if (has_duplicate_to_read()) renew_readers(object);
}

}  // namespace

int release_record(OpenFile& file) {
  int result = 0;
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor != nullptr) {
    if (file.may_write) look_after_node();
    store_if_loadable(*actor, file);
    actor->waits.tell_of(*actor->memory, actor->self, file.object);
    TransitHolds::settle();  // first: ours is then the last hold
    DescriptionTable& descriptions = session.memory().descriptions();
    if (descriptions.release(file.hold, actor->self).last) {
      CAIRN_DCHECK(file.description->references.load(std::memory_order_relaxed) == 0);
      tell_about(*actor, file, AccessKind::kClose);
      result = close_object(access_of(*actor, file), file.may_write);
      drop_own_locks(*actor, file);
      {
        const OffsetGuard guard(*actor, file);
        file.description->generation.fetch_add(1, std::memory_order_acq_rel);  // for late calls
      }
      descriptions.destroy(file.index);
    }
  }
  return result;
}

void discard_record(OpenFile& file, int placeholder) {
  drop_private(file, placeholder);
  OpenFilePool::give_back(&file);
}

namespace {

int end_record(OpenFile& file, int fd) {
  const int result = release_record(file);
  discard_record(file, fd);
  return result;
}

// One of the record's descriptors is gone: the application's at `fd`. Returns: the result of the
// record's end, if that was the last.
int count_down(OpenFile& file, int fd) {
  CAIRN_DCHECK(file.count.descriptors() > 0);
  return file.count.drop_descriptor() ? end_record(file, fd) : 0;
}

// There is no number left for a record whose own is about to be closed: it works on another of the
// program's, as far as that is a real one. Without one nobody reads another file's bytes there.
void stay_at_duplicate(OpenFile& file) {
  int other = -1;
  DescriptorTable::for_each([&](int fd, OpenFile& there) {
    if (&there == &file && !is_placeholder(fd)) other = fd;
  });
  file.work_on(other, other < 0 ? O_RDONLY : static_cast<int>(file.flags() & O_ACCMODE));
}

// The program's own number, if the record works on that: it has been closed already, and may be
// another file's now. Else -1.
int closed_number(const OpenFile& file) {
  const int own = file.private_fd();
  return PrivateDescriptors::is_private(own) ? -1 : own;
}

// No descriptor of the program's is closed here, so what it has locked stays locked.
void keep_for_locks(OpenFile& file) {
  PosixBacking left(-1, O_RDONLY);
  const int extra = file.backing->extra_fd();
  if (extra >= 0 && PosixLocks::keeps_open(file.object, extra)) file.backing->give_extra_to(left);
  const int twin = file.twin_fd.load();
  if (twin >= 0 && PosixLocks::keeps_open(file.object, twin)) file.twin_fd = -1;
  const int own = file.private_fd();
  if (own >= 0 && PosixLocks::keeps_open(file.object, own)) file.work_on(-1, O_RDONLY);
}

}  // namespace

OpenFile* hold_file(int fd) {
  while (OpenFile* file = DescriptorTable::find(fd)) {
    const bool is_counted = file->count.add_call();
    // Each further round is one in which another thread has changed the table.
    if (DescriptorTable::find(fd) == file) return is_counted ? file : nullptr;
    if (is_counted) release_held(*file);  // given back meanwhile, and maybe another file's now
  }
  return nullptr;
}

void release_held(OpenFile& file) {
  if (!file.count.drop_call()) return;
  (void)release_record(file);
  if (PosixLocks::is_locked(file.object)) keep_for_locks(file);
  discard_record(file, closed_number(file));
}

void look_after_node() {
  Actor* const actor = notice_lost_node() ? Session::instance().actor_if_any() : nullptr;
  if (actor == nullptr) return;
  for_each_writer([actor](OpenFile& file) {
    const Object& object = actor->object(file.object);
    if (object.dirty_blocks.load() == 0 && !object.has(kObjectTimesDirty)) return;
    // An error is the object's: the next fsync or close of the file reports it.
    (void)sync_object(access_of(*actor, file), false, nullptr);
  });
}

bool store_by_own_writer(Actor& actor, ObjectIndex object, bool durable) {
  bool is_stored = false;
  for_each_writer([&](OpenFile& file) {
    if (is_stored || file.object != object) return;
    is_stored = sync_object(access_of(actor, file), durable, nullptr) == 0;
  });
  return is_stored;
}

void drop_in_child(OpenFile& file) { drop_private(file, closed_number(file)); }

void release_displaced(OpenFile* file, int fd) {
  if (file == nullptr) return;
  // The number is another file's by now.
  if (file->private_fd() == fd) file->work_on(-1, O_RDONLY);
  if (PosixLocks::is_locked(file->object)) drop_locks(*file);
  (void)count_down(*file, fd);
}

bool leave_number(OpenFile& file, int fd) {
  CAIRN_DCHECK(file.private_fd() == fd);
  const int access_mode = static_cast<int>(file.flags() & O_ACCMODE);
  const int moved = PrivateDescriptors::make(fd, true);
  if (moved >= 0) file.work_on(moved, access_mode);
  update_close_on_exec(file);
  return moved >= 0;
}

void return_to_number(OpenFile& file, int fd) {
  const int access_mode = static_cast<int>(file.flags() & O_ACCMODE);
  const int moved = file.private_fd();
  file.work_on(fd, access_mode);
  if (PosixLocks::keeps_open(file.object, moved)) return;
  PrivateDescriptors::remove(moved);
  sys::close(moved);
}

int forget_tracked(int fd) {
  OpenFile* file = DescriptorTable::take(fd);
  if (file == nullptr) return -EBADF;
  if (PosixLocks::is_locked(file->object)) drop_locks(*file);
  // As long as this number counts, nobody else is the last one, who would close it.
  if (file->private_fd() == fd) {
    if (file->count.drop_if_alone()) return end_record(*file, fd);
    if (!leave_number(*file, fd)) stay_at_duplicate(*file);
  }
  return count_down(*file, fd);
}

int close_tracked(int fd) {
  const int result = forget_tracked(fd);
  if (result == -EBADF && DescriptorTable::find(fd) == nullptr) {
    return sys::close(fd);  // another thread was faster: the kernel knows what the number is now
  }
  const int closed = sys::close(fd);
  // Another thread's dup2() onto the number has come and gone in between.
  if (__builtin_expect(DescriptorTable::find(fd) != nullptr, 0) &&
      sys::fcntl(fd, F_GETFD) == -EBADF) {
    (void)forget_tracked(fd);
  }
  return result < 0 ? result : closed;
}

}  // namespace cairn
