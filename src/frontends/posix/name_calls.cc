// SPDX-License-Identifier: Apache-2.0
// unlink(), rename() and link(): names are the kernel's business; here the buffer learns when a
// file lost its last one or got its first, and that its ctime moved.
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/system_call.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/files/file_closing.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/paths/buffer_candidate.h"
#include "frontends/paths/visible_status.h"
#include "frontends/posix/times.h"
#include "frontends/protocol/question.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/flush/orphan_words.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(const char*)> unlink{"unlink"};
constinit RealCall<int(int, const char*, int)> unlinkat{"unlinkat"};
constinit RealCall<int(const char*)> remove{"remove"};
constinit RealCall<int(const char*, const char*)> rename{"rename"};
constinit RealCall<int(int, const char*, int, const char*)> renameat{"renameat"};
constinit RealCall<int(int, const char*, int, const char*, unsigned)> renameat2{"renameat2"};
constinit RealCall<int(const char*, const char*)> link{"link"};
constinit RealCall<int(int, const char*, int, const char*, int)> linkat{"linkat"};
}  // namespace
}  // namespace real

namespace {

// The file that is about to lose a name. A descriptor outlives the name and tells afterwards
// whether that was the last one: another process may give the file a name meanwhile.
class Victim {
 public:
  Victim(int directory, const char* path) : directory_(directory), path_(path) {
    if (!may_need_overlay() || path == nullptr) return;
    struct ::statx status;
    const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    if (sys::statx(directory, path, flags, kOverlayMask, &status) < 0) return;
    if (object_of(status) == ObjectIndex::kNone) return;
    remains_ = sys::openat(directory, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  }
  ~Victim() {
    if (remains_ >= 0) sys::close(remains_);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  // The call has succeeded.
  void is_gone() const {
    struct ::statx status;
    if (remains_ < 0 || sys::statx(remains_, "", AT_EMPTY_PATH, kOverlayMask, &status) < 0) return;
    if (status.stx_nlink != 0) return adopt_kernel_times(remains_, "", AT_EMPTY_PATH);
    Session& session = Session::instance();
    Actor* actor = session.actor_if_any();
    if (actor == nullptr) return;
    const ObjectIndex object = session.memory().objects().find(key_of(status));
    if (object == ObjectIndex::kNone) return;
    const Object& record = actor->object(object);
    // A crash from here on must not bring the file back: a database's journal that is gone says
    // that its transaction is done.
    if (record.is_in_log()) (void)session.note_cut(object, protocol::kCutAway);
    if (may_be_left_in_log(session.memory(), object) && is_gone_for_good())
      (void)void_in_log(session.memory(), object);
    const bool is_held = record.is_held_by_service();  // the record may not outlive the name
    unlink_object(*actor, object);
    if (is_held && record.opens.load(std::memory_order_acquire) == 0) session.discarded(object);
  }

 private:
  // A crash would bring the name back, and with it what the log has of the file, unless the store
  // has lost it durably.
  bool is_gone_for_good() const {
    char folder[PATH_MAX];
    const std::size_t length = std::strlen(path_);
    if (length >= sizeof folder) return false;
    std::memcpy(folder, path_, length + 1);
    char* const slash = std::strrchr(folder, '/');
    if (slash != nullptr) slash[slash == folder ? 1 : 0] = '\0';
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    const int fd = sys::openat(directory_, slash == nullptr ? "." : folder, kFlags);
    const bool is_durable = fd >= 0 && sys::fsync(fd) == 0;
    if (fd >= 0) (void)sys::close(fd);
    return is_durable;
  }

  const int directory_;
  const char* const path_;
  int remains_ = -1;
};

int finish(int result, const Victim& victim) {
  if (result == 0) {
    const ErrnoKeeper keeper;
    victim.is_gone();
  }
  return result;
}

// The two files of a rename before it.
class Renaming {
 public:
  Renaming(int from_directory, const char* from, int to_directory, const char* to)
      : from_directory_(from_directory), from_(from) {
    const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    has_first_ = sys::statx(from_directory, from, flags, kOverlayMask, &first_) == 0;
    has_second_ = has_first_ && sys::statx(to_directory, to, flags, STATX_INO, &second_) == 0;
  }

  // Renaming a file onto another name of itself does nothing, so nothing is gone then.
  bool is_of_one_file() const { return has_second_ && is_same_file(first_, second_); }

  // A program that replaces a file by another means to have one of the two, also after a crash: the
  // new one's data has to be durable before its name is (as ext4 promises, auto_da_alloc), and in
  // its store where nobody else is left to store it. 0 or -errno: then the old file keeps its name.
  int make_durable() {
    const ErrnoKeeper keeper;
    object_ = has_first_ ? object_of(first_) : ObjectIndex::kNone;
    if (object_ == ObjectIndex::kNone || !has_second_) return 0;
    look_after_node();
    Session& session = Session::instance();
    const Object& object = session.memory().objects().at(object_);
    const bool is_owed = object.is_made_durable_by_log() && may_be_lost(object);
    const bool is_scratch = object.handling().mode == BufferingMode::kScratch;
    const bool is_dirty = !is_scratch && object.dirty_blocks.load() != 0;
    if (is_dirty) session.memory().look_after_service();  // also when it died a moment ago
    const bool is_nobodys = is_dirty && !session.memory().is_served();
    if (is_owed ? session.request_durable(object_) == 0 : !is_nobodys) return 0;
    Actor* const actor = session.actor_if_any();
    if (actor == nullptr) return -EIO;
    return store_by_own_writer(*actor, object_, is_owed) ? 0 : store_by_name(*actor, is_owed);
  }
  void note_done() const {
    if (object_ == ObjectIndex::kNone) return;
    Session& session = Session::instance();
    if (session.memory().objects().at(object_).is_in_log()) session.note_renamed(object_);
  }

 private:
  // Stored is not enough: the store's device may not have it, nor has the log for certain.
  static bool may_be_lost(const Object& object) {
    return object.dirty_blocks.load(std::memory_order_acquire) != 0 || object.is_in_log() ||
           object.is_store_owed();
  }

  // Neither log nor service takes it, and nobody here has it open for writing. The name may mean
  // another file by now, which must not get these bytes. 0 or -errno.
  int store_by_name(Actor& actor, bool durable) const {
    constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    const Object& object = actor.object(object_);
    int access = O_RDWR;
    int fd = sys::openat(from_directory_, from_, access | kFlags);
    if (fd == -EACCES) fd = sys::openat(from_directory_, from_, (access = O_RDONLY) | kFlags);
    if (fd < 0) return object.dirty_blocks.load() == 0 && !object.is_store_owed() ? 0 : fd;
    struct ::statx now;
    int error = 0;
    if (sys::statx(fd, "", AT_EMPTY_PATH, kOverlayMask, &now) == 0 && object_of(now) == object_) {
      PosixBacking backing(fd, access);
      error = sync_object({actor, object_, backing, Session::instance()}, durable, nullptr);
      backing.close_extra();
    }
    // Closing it would cost the process its locks of the file.
    if (!PosixLocks::keeps_open(object_, fd)) (void)sys::close(fd);
    return error;
  }

  const int from_directory_;
  const char* const from_;
  struct ::statx first_;
  struct ::statx second_;
  bool has_first_ = false;
  bool has_second_ = false;
  ObjectIndex object_ = ObjectIndex::kNone;
};

// A process without the node cannot know whether the store has all of a file, so it must not use
// one (Session::use_unserved), nor replace another one by it: the old content would be gone for
// good, and the new perhaps nowhere.
bool is_blind_replacement(int from_directory, const char* from, int to_directory, const char* to) {
  if (!Session::instance().is_blind()) return false;
  const ErrnoKeeper keeper;
  struct ::statx first;
  struct ::statx second;
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  constexpr unsigned kMask = STATX_TYPE | STATX_INO | STATX_NLINK;
  const bool replaces = sys::statx(from_directory, from, flags, kMask, &first) == 0 &&
                        sys::statx(to_directory, to, flags, kMask, &second) == 0 &&
                        S_ISREG(first.stx_mode) && S_ISREG(second.stx_mode) &&
                        !is_same_file(first, second);
  // Another name of it may be a managed one.
  return replaces && (first.stx_nlink > 1 || may_be_buffered(from_directory, from));
}

template <typename Call>
int rename_with(int from_directory, const char* from, int to_directory, const char* to,
                Call&& call) {
  if (!may_need_overlay()) {
    if (!is_blind_replacement(from_directory, from, to_directory, to)) return call();
    return with_errno(-EIO);
  }
  Renaming renaming(from_directory, from, to_directory, to);
  if (renaming.is_of_one_file()) return call();
  const Victim victim(to_directory, to);
  if (const int error = renaming.make_durable(); error < 0) {
    errno = -error;
    return -1;
  }
  const int result = finish(call(), victim);
  if (result == 0) {
    const ErrnoKeeper keeper;
    adopt_kernel_times(to_directory, to, AT_SYMLINK_NOFOLLOW);
    renaming.note_done();
  }
  return result;
}

// A file without a name (O_TMPFILE) has one now: its data must outlive its descriptors.
int finish_link(int result, int directory, const char* path) {
  if (result != 0 || !may_need_overlay()) return result;
  const ErrnoKeeper keeper;
  struct ::statx status;
  if (sys::statx(directory, path, AT_SYMLINK_NOFOLLOW, kOverlayMask, &status) < 0) return result;
  const ObjectIndex object = object_of(status);
  if (object == ObjectIndex::kNone) return result;
  Session::instance().memory().objects().at(object).clear(kObjectUnlinked);
  adopt_kernel_times(directory, path, AT_SYMLINK_NOFOLLOW);
  return result;
}

}  // namespace
}  // namespace cairn

CAIRN_HOOK(int, link, (const char* from, const char* to)) {
  return cairn::finish_link(cairn::real::link(from, to), AT_FDCWD, to);
}

CAIRN_HOOK(int, linkat,
           (int from_directory, const char* from, int to_directory, const char* to, int flags)) {
  return cairn::finish_link(cairn::real::linkat(from_directory, from, to_directory, to, flags),
                            to_directory, to);
}

CAIRN_HOOK(int, unlink, (const char* path)) {
  const cairn::Victim victim(AT_FDCWD, path);
  return cairn::finish(cairn::real::unlink(path), victim);
}

CAIRN_HOOK(int, unlinkat, (int directory, const char* path, int flags)) {
  if ((flags & AT_REMOVEDIR) != 0) return cairn::real::unlinkat(directory, path, flags);
  const cairn::Victim victim(directory, path);
  return cairn::finish(cairn::real::unlinkat(directory, path, flags), victim);
}

CAIRN_HOOK(int, remove, (const char* path)) {
  const cairn::Victim victim(AT_FDCWD, path);
  return cairn::finish(cairn::real::remove(path), victim);
}

CAIRN_HOOK(int, rename, (const char* from, const char* to)) {
  return cairn::rename_with(AT_FDCWD, from, AT_FDCWD, to,
                            [=] { return cairn::real::rename(from, to); });
}

CAIRN_HOOK(int, renameat,
           (int from_directory, const char* from, int to_directory, const char* to)) {
  return cairn::rename_with(from_directory, from, to_directory, to, [=] {
    return cairn::real::renameat(from_directory, from, to_directory, to);
  });
}

CAIRN_HOOK(int, renameat2,
           (int from_directory, const char* from, int to_directory, const char* to,
            unsigned flags)) {
  if ((flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)) != 0) {
    const bool is_blind = (flags & RENAME_EXCHANGE) != 0 && !cairn::may_need_overlay() &&
                          (cairn::is_blind_replacement(from_directory, from, to_directory, to) ||
                           cairn::is_blind_replacement(to_directory, to, from_directory, from));
    if (is_blind) return cairn::with_errno(-EIO);
    const int result = cairn::real::renameat2(from_directory, from, to_directory, to, flags);
    if (result == 0) {
      const cairn::ErrnoKeeper keeper;
      cairn::adopt_kernel_times(to_directory, to, AT_SYMLINK_NOFOLLOW);
      if ((flags & RENAME_EXCHANGE) != 0)
        cairn::adopt_kernel_times(from_directory, from, AT_SYMLINK_NOFOLLOW);
    }
    return result;
  }
  return cairn::rename_with(from_directory, from, to_directory, to, [=] {
    return cairn::real::renameat2(from_directory, from, to_directory, to, flags);
  });
}
