// SPDX-License-Identifier: Apache-2.0
#include "frontends/paths/buffer_candidate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include <cstring>

#include "base/descriptor_path.h"
#include "base/descriptor_shortage.h"
#include "base/system_call.h"
#include "frontends/client/session.h"
#include "frontends/paths/path_filter.h"
#include "frontends/paths/visible_status.h"

namespace cairn {

static_assert((kCandidateMask & kOverlayMask) == kOverlayMask, "key_of() reads these parts");

namespace {

// The open fails where the file is there.
bool is_made_anew(int flags) { return (flags & O_CREAT) != 0 && (flags & O_EXCL) != 0; }

// Where the name leads, for a process without a descriptor to look with.
bool is_managed_name(int directory, const char* path) {
  char name[kDescriptorPathBytes + PATH_MAX] = "";
  char place[PATH_MAX];
  const std::size_t length = std::strlen(path);
  if (length >= PATH_MAX) return false;
  if (path[0] != '/' && directory != AT_FDCWD) {
    write_descriptor_path(directory, name);
    std::strcat(name, "/");
  }
  std::memcpy(name + std::strlen(name), path, length + 1);
  const int saved = errno;
  const bool is_found = ::realpath(name, place) != nullptr;
  errno = saved;
  return is_found && PathFilter::manages_path(place);
}

// Whether an open of this path would give a managed file. Only a process that has not attached yet
// asks.
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
  if (fd < 0) return is_short_of_descriptors(-fd) && is_managed_name(directory, path);
  const bool is_managed = PathFilter::manages(fd);
  sys::close(fd);
  return is_managed;
}

// Whether the tiers may have something of the file.
bool is_known(int directory, const char* path) {
  const ObjectTable& objects = Session::instance().memory().objects();
  struct ::statx raw;
  return objects.live_count() > 0 && sys::statx(directory, path, 0, kOverlayMask, &raw) >= 0 &&
         objects.find(key_of(raw)) != ObjectIndex::kNone;
}

}  // namespace

bool is_never_buffered(int flags) {
  if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_ACCMODE) return true;
  return (flags & O_DIRECTORY) != 0 && (flags & O_TMPFILE) != O_TMPFILE;
}

bool is_candidate(int fd, const struct ::statx& raw, const ObjectKey& key, ObjectIndex* known) {
  if (!S_ISREG(raw.stx_mode)) return false;
  Session& session = Session::instance();
  if (session.attach() && session.memory().objects().live_count() > 0) {
    *known = session.memory().objects().find(key);
    if (*known != ObjectIndex::kNone) return true;
  }
  // Not before: a short program that reads a known file does without these four system calls.
  PathFilter::resolve();
  // A process that does not see the table of objects cannot tell whether another name of the file
  // is a managed one.
  if (session.standing() == Standing::kUnserved && raw.stx_nlink > 1) return true;
  const std::uint64_t mount = (raw.stx_mask & STATX_MNT_ID) != 0 ? raw.stx_mnt_id : 0;
  if (mount != 0 && !PathFilter::may_manage_mount(mount)) return false;
  return PathFilter::manages(fd);
}

bool must_be_buffered_after_all(const struct ::statx& raw, const ObjectKey& key,
                                ObjectIndex* known) {
  const Session& session = Session::instance();
  if (!S_ISREG(raw.stx_mode) || !session.is_attached()) return false;
  session.memory().unserved_board().unmanaged.note(key);
  if (session.memory().objects().live_count() != 0) *known = session.memory().objects().find(key);
  return *known != ObjectIndex::kNone;
}

bool is_buffered_by_others(int fd, const ObjectKey& key) {
  Session& session = Session::instance();
  char path[PATH_MAX];
  if (!session.is_attached() &&
      (PathFilter::place_of(fd, path, sizeof path) == nullptr || !session.attach())) {
    return false;
  }
  session.memory().unserved_board().unmanaged.note(key);
  return session.memory().objects().find(key) != ObjectIndex::kNone;
}

bool may_be_buffered(int directory, const char* path) {
  if (!Session::instance().is_attached()) return may_be_managed(directory, path);
  const int fd = sys::openat(directory, path, O_PATH | O_CLOEXEC);
  if (fd < 0) return is_short_of_descriptors(-fd) && is_known(directory, path);
  struct ::statx raw;
  ObjectIndex known = ObjectIndex::kNone;
  const bool is_it = sys::statx(fd, "", AT_EMPTY_PATH, kCandidateMask, &raw) >= 0 &&
                     is_candidate(fd, raw, key_of(raw), &known);
  sys::close(fd);
  return is_it;
}

const Actor* opening_actor(int directory, const char* path, int flags) {
  Session& session = Session::instance();
  if (!session.is_configured() || is_never_buffered(flags)) return nullptr;
  if (session.is_attached()) return session.actor_if_any();
  return !is_made_anew(flags) && may_be_managed(directory, path) ? session.actor_if_any() : nullptr;
}

void note_path_descriptor(int fd) {
  struct ::statx raw;
  ObjectIndex known = ObjectIndex::kNone;
  if (sys::statx(fd, "", AT_EMPTY_PATH, kCandidateMask, &raw) < 0) return;
  if (!is_candidate(fd, raw, key_of(raw), &known)) return;
  Session& session = Session::instance();
  if (session.attach()) session.memory().unserved_board().path_descriptors.store(1);
}

}  // namespace cairn
