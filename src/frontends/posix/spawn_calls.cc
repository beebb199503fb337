// SPDX-License-Identifier: Apache-2.0
// posix_spawn: the child is started inside libc, so what it gets is worked out here and written
// into the file actions.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/descriptor_shortage.h"
#include "base/system_call.h"
#include "frontends/client/descriptor_floor.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/kernel_descriptors.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/transit_holds.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/paths/buffer_candidate.h"
#include "frontends/posix/exec_plan.h"
#include "frontends/posix/program_search.h"
#include "frontends/processes/busy_program.h"
#include "frontends/processes/launch_environment.h"
#include "frontends/processes/spawn_actions.h"

namespace cairn {

using Actions = posix_spawn_file_actions_t;
using Attributes = posix_spawnattr_t;
using Kind = SpawnAction::Kind;

namespace real {
namespace {
using Spawn = int(pid_t*, const char*, const Actions*, const Attributes*, char* const*,
                  char* const*);
constinit RealCall<Spawn> posix_spawn{"posix_spawn"};
constinit RealCall<Spawn> posix_spawnp{"posix_spawnp"};
constinit RealCall<int(Actions*)> init{"posix_spawn_file_actions_init"};
constinit RealCall<int(Actions*)> destroy{"posix_spawn_file_actions_destroy"};
constinit RealCall<int(Actions*, int, int)> adddup2{"posix_spawn_file_actions_adddup2"};
constinit RealCall<int(Actions*, int)> addclose{"posix_spawn_file_actions_addclose"};
constinit RealCall<int(Actions*, int, const char*, int, mode_t)> addopen{
    "posix_spawn_file_actions_addopen"};
constinit RealCall<int(Actions*, const char*)> addchdir{"posix_spawn_file_actions_addchdir_np"};
constinit RealCall<int(Actions*, int)> addfchdir{"posix_spawn_file_actions_addfchdir_np"};
constinit RealCall<int(Actions*, int)> addclosefrom{"posix_spawn_file_actions_addclosefrom_np"};
constinit RealCall<int(Actions*, int)> addtcsetpgrp{"posix_spawn_file_actions_addtcsetpgrp_np"};
}  // namespace
}  // namespace real

namespace {

// A descriptor as it will be in the child.
struct ChildDescriptor {
  Inherited as;
  bool survives;
};

ChildDescriptor child_descriptor(int fd, OpenFile& file, bool survives, bool is_placeholder) {
  return {.as = {.fd = fd,
                 .file = &file,
                 .index = file.index,
                 .generation = file.generation,
                 .is_placeholder = is_placeholder},
          .survives = survives};
}

// A descriptor here that only the child is to have.
struct Opened {
  int fd;
  ObjectIndex object;  // kNone if it is not buffered
};

// This process, which has not opened it, keeps its locks on the file.
void close_here(const Opened& opened) {
  if (!PosixLocks::keeps_open(opened.object, opened.fd)) ::close(opened.fd);
}

// Works out the child's descriptors and builds the actions that make them.
class SpawnPlan {
 public:
  SpawnPlan(const Actions* given, const ExecTarget& target) : target_(target) {
    notes_ = SpawnNotes::of(given);
    const bool is_readable = notes_ == nullptr || notes_->is_complete();
    const unsigned tracked = count_inheritable();
    capacity_ = tracked + (notes_ != nullptr ? notes_->count() : 0) + 1;
    map_ = static_cast<ChildDescriptor*>(malloc(capacity_ * sizeof(ChildDescriptor)));
    entries_ = static_cast<Inherited*>(malloc(capacity_ * sizeof(Inherited)));
    // An action may open a file here, which a program outside the run gets as one more description.
    opened_capacity_ = 2 * capacity_;
    opened_ = static_cast<Opened*>(malloc(opened_capacity_ * sizeof(Opened)));
    is_able_ = is_readable && map_ != nullptr && entries_ != nullptr && opened_ != nullptr;
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    const ErrnoKeeper keeper;
    for (unsigned index = 0; index < opened_count_; ++index) close_here(opened_[index]);
    if (has_built_) real::destroy(&built_);
    free(map_);
    free(entries_);
    free(opened_);
  }

  // False when the child must be started with the actions as given.
  bool prepare() {
    if (!is_able_) return false;
    is_certain_ = !DescriptorTable::any() && !has_open();
    if (is_certain_) return false;
    DescriptorTable::for_each([this](int fd, OpenFile& file) {
      if (map_count_ < capacity_)
        map_[map_count_++] =
            child_descriptor(fd, file, survives_exec(fd), is_placeholder_of(fd, file));
    });
    if (real::init(&built_) != 0) return false;
    has_built_ = true;
    for (unsigned index = 0; notes_ != nullptr && index < notes_->count(); ++index) {
      if (apply(notes_->at(index)) != 0) return false;
    }
    collect();
    is_certain_ = true;
    if (count_ == 0 && opened_count_ == 0) return false;
    error_ = pass_on();
    is_certain_ = error_ == 0;
    return is_certain_;
  }

  // entries() name every placeholder that the child will have.
  bool is_certain() const { return is_certain_; }
  // Why the child must not be started at all, as errno.
  int error() const { return error_; }
  const Actions* actions() const { return &built_; }
  const Inherited* entries() const { return entries_; }
  unsigned count() const { return count_; }
  void give_up_holds() { release_transit_holds(entries_, count_, TransitHolds::unborn()); }
  // Duplicating a descriptor onto itself is how an action clears FD_CLOEXEC.
  int pass_file(int fd) { return real::adddup2(&built_, fd, fd); }

 private:
  bool has_open() const {
    for (unsigned index = 0; notes_ != nullptr && index < notes_->count(); ++index) {
      if (notes_->at(index).kind == Kind::kOpen) return true;
    }
    return false;
  }

  // `from`: the descriptor here whose duplicate `fd` will be.
  void set(int fd, int from, OpenFile* file, bool survives) {
    erase(fd, fd);
    if (file != nullptr && map_count_ < capacity_)
      map_[map_count_++] = child_descriptor(fd, *file, survives, is_placeholder_of(from, *file));
  }
  void erase(int first, int last) {
    const auto end =
        std::remove_if(map_, map_ + map_count_, [&](const ChildDescriptor& descriptor) {
          return descriptor.as.fd >= first && descriptor.as.fd <= last;
        });
    map_count_ = static_cast<unsigned>(end - map_);
  }
  OpenFile* find(int fd) const {
    for (unsigned index = 0; index < map_count_; ++index) {
      if (map_[index].as.fd == fd) return map_[index].as.file;
    }
    return nullptr;
  }
  bool is_needed_private(int fd) const {
    for (unsigned index = 0; index < map_count_; ++index) {
      const OpenFile& file = *map_[index].as.file;
      if ((file.private_fd() == fd && map_[index].as.fd != fd) || file.twin_fd == fd) return true;
    }
    return false;
  }

  int apply(const SpawnAction& action) {
    switch (action.kind) {
      case Kind::kDuplicate:
        set(action.to, action.fd, find(action.fd), true);
        return real::adddup2(&built_, action.fd, action.to);
      case Kind::kClose:
        erase(action.fd, action.fd);
        // Closing "everything" one by one must not take our own away.
        return is_needed_private(action.fd) ? 0 : real::addclose(&built_, action.fd);
      case Kind::kOpen:
        return apply_open(action);
      case Kind::kCloseFrom:
        return apply_close_from(action.fd);
      case Kind::kChangeDirectory:
        is_elsewhere_ = true;
        return real::addchdir(&built_, action.path);
      case Kind::kChangeToDescriptor:
        is_elsewhere_ = true;
        return real::addfchdir(&built_, action.fd);
      case Kind::kSetForeground:
        return real::addtcsetpgrp(&built_, action.fd);
    }
    return EINVAL;
  }

  // This process opens a file that may be buffered and hands it over; the child does all else, and
  // meets every error but those after which libc would use the file past us.
  int apply_open(const SpawnAction& action) {
    CAIRN_DCHECK(action.path != nullptr);
    const bool is_ours = is_file(action);
    const int fd = is_ours ? ::open(action.path, action.flags | O_CLOEXEC, action.mode) : -1;
    if (is_ours && fd < 0 && is_final(errno, action)) return error_ = errno;
    const int floor = std::max(notes_->highest(), action.fd) + 1;
    const int high = fd >= 0 ? ::fcntl(fd, F_DUPFD_CLOEXEC, floor) : -1;
    OpenFile* const file = fd >= 0 ? DescriptorTable::find(fd) : nullptr;
    const ObjectIndex object = file != nullptr ? file->object : ObjectIndex::kNone;
    if (fd >= 0) close_here({.fd = fd, .object = object});
    if (high < 0) {
      erase(action.fd, action.fd);
      return real::addopen(&built_, action.fd, action.path, action.flags, action.mode);
    }
    CAIRN_DCHECK(opened_count_ < opened_capacity_);
    opened_[opened_count_++] = {.fd = high, .object = object};
    set(action.fd, high, DescriptorTable::find(high), (action.flags & O_CLOEXEC) == 0);
    return real::adddup2(&built_, high, action.fd);
  }

  // The file must not be used; or it would be cut in the child, whose descriptors may suffice.
  static bool is_final(int error, const SpawnAction& action) {
    const bool would_cut = (action.flags & O_TRUNC) != 0 && is_short_of_descriptors(error);
    return error == EIO || (would_cut && may_be_buffered(AT_FDCWD, action.path));
  }

  // To open a file that is not buffered would cost this process its locks on it.
  bool is_file(const SpawnAction& action) const {
    if (is_elsewhere_ || has_closed_from_ || (action.flags & (O_PATH | O_DIRECTORY)) != 0)
      return false;
    struct ::statx status;
    const int error = sys::statx(AT_FDCWD, action.path, 0, STATX_TYPE, &status);
    if (error == -ENOENT) return (action.flags & O_CREAT) != 0;
    return error == 0 && S_ISREG(status.stx_mode) && may_be_buffered(AT_FDCWD, action.path);
  }

  int apply_close_from(int lowest) {
    erase(lowest, INT_MAX);
    has_closed_from_ = true;
    if (map_count_ == 0) return real::addclosefrom(&built_, lowest);
    // Looked for in order, not one by one for each descriptor that there is.
    auto* needed = static_cast<int*>(malloc((2 * map_count_ + 1) * sizeof(int)));
    if (needed == nullptr) return ENOMEM;
    unsigned needed_count = 0;
    for (unsigned index = 0; index < map_count_; ++index) {
      const OpenFile& file = *map_[index].as.file;
      if (file.private_fd() != map_[index].as.fd) needed[needed_count++] = file.private_fd();
      if (file.twin_fd >= 0) needed[needed_count++] = file.twin_fd;
    }
    std::sort(needed, needed + needed_count);
    int error = 0;
    for (unsigned index = 0; index < notes_->count(); ++index) {
      const SpawnAction& action = notes_->at(index);
      const int made = action.kind == Kind::kDuplicate ? action.to
                       : action.kind == Kind::kOpen    ? action.fd
                                                       : -1;
      if (made >= lowest && error == 0) error = real::addclose(&built_, made);
    }
    for_each_kernel_descriptor([&](int fd) {
      if (fd >= lowest && error == 0 && !std::binary_search(needed, needed + needed_count, fd))
        error = real::addclose(&built_, fd);
    });
    free(needed);
    return error;
  }

  void collect() {
    CAIRN_DCHECK(count_ == 0 && map_count_ <= capacity_);
    for (unsigned index = 0; index < map_count_; ++index) {
      if (map_[index].survives) entries_[count_++] = map_[index].as;
    }
  }

  int pass_on() {
    CAIRN_DCHECK(has_built_);
    int error = 0;
    if (!target_.needs_real_files())
      error = -make_transit_holds(entries_, &count_, TransitHolds::unborn());
    for (unsigned index = 0; index < count_ && error == 0; ++index) {
      const bool is_held = !target_.needs_real_files() && !entries_[index].is_unheld;
      error = is_held ? pass_private(*entries_[index].file) : pass_real(entries_[index]);
    }
    if (error != 0) give_up_holds();
    return error;
  }

  // Most of them the kernel passes on by itself. An action for those would make the start fail when
  // another thread has closed the file by then. One that does not survive by itself is passed by an
  // action of the program's own, which fails as well.
  int pass_private(const OpenFile& file) {
    int error = 0;
    for (const int fd : file.real_fds()) {
      if (error == 0 && PrivateDescriptors::is_private(fd) && is_close_on_exec(fd))
        error = pass_file(fd);
    }
    return error;
  }

  int pass_real(const Inherited& entry) {
    const HeldEntry held(entry);
    if (!held.is_open()) return 0;
    bool is_extra = false;
    int descriptor = make_real_descriptor(*entry.file, &is_extra);
    const bool is_locked = PosixLocks::is_locked(entry.file->object);
    if (descriptor >= 0 && !is_extra && entry.is_placeholder && !is_locked) {
      // The child must find it although another thread may close the file. (Each duplicate of a
      // locked file would have to stay open.)
      const int own = sys::fcntl(descriptor, F_DUPFD_CLOEXEC, descriptor_floor());
      is_extra = own >= 0;
      descriptor = is_extra || own == -EBADF ? own : descriptor;
    }
    if (descriptor < 0) return is_still_open(entry) ? -descriptor : 0;
    CAIRN_DCHECK(!is_extra || opened_count_ < opened_capacity_);
    if (is_extra) opened_[opened_count_++] = {.fd = descriptor, .object = entry.file->object};
    return entry.is_placeholder ? real::adddup2(&built_, descriptor, entry.fd) : 0;
  }

  ExecTarget target_;
  const SpawnNotes* notes_ = nullptr;
  bool is_able_ = false;
  bool is_certain_ = false;
  bool is_elsewhere_ = false;
  bool has_closed_from_ = false;
  bool has_built_ = false;
  int error_ = 0;
  Actions built_;
  unsigned capacity_ = 0;
  ChildDescriptor* map_ = nullptr;
  unsigned map_count_ = 0;
  Inherited* entries_ = nullptr;
  unsigned count_ = 0;
  Opened* opened_ = nullptr;
  unsigned opened_capacity_ = 0;
  unsigned opened_count_ = 0;
};

struct SpawnCall {
  pid_t* pid;
  const char* file;
  const Actions* actions;
  const Attributes* attributes;
  char* const* arguments;
  char* const* environment;
};

int spawn(const SpawnCall& call, bool is_searched) {
  const auto& start = is_searched ? real::posix_spawnp : real::posix_spawn;
  if (!LaunchEnvironment::is_member() || is_vfork_child() || !is_readable_text(call.file) ||
      !LaunchEnvironment::is_readable(call.environment)) {
    return start(call.pid, call.file, call.actions, call.attributes, call.arguments,
                 call.environment);
  }
  char found[PATH_MAX];
  const char* path = is_searched ? search_program(call.file, found, sizeof found) : call.file;
  ExecTarget target{.command = path != nullptr ? path : call.file};
  target.leaves_run = LaunchEnvironment::leaves_run(call.environment);
  const auto probe = [path] { return probe_program(AT_FDCWD, path, 0, store_before_use); };
  if (path != nullptr) target.foreign = probe().foreign;
  if (target.foreign == ForeignReason::kNone) target.foreign = reason_of_process();
  if (target.needs_real_files()) {
    store_everything();
    if (target.foreign != ForeignReason::kNone)
      Session::instance().notify_foreign(target.command, text_of(target.foreign));
  }
  TransitHolds::forget_unborn();  // of a fork whose result the library has not seen
  SpawnPlan plan(call.actions, target);
  const bool is_planned = plan.prepare();
  const unsigned count = is_planned ? plan.count() : 0;
  const std::size_t built =
      LaunchEnvironment::build_bytes(call.environment) + inline_table_bytes(count);
  void* scratch = malloc(built + table_bytes(count));
  const bool has_table = plan.is_certain() && !target.needs_real_files();
  PassedTable passed;
  if (scratch != nullptr && has_table)
    passed = write_table(plan.entries(), count, true, static_cast<char*>(scratch) + built);
  pid_t child = -1;
  int error = scratch == nullptr ? ENOMEM : plan.error();
  if (error == 0 && has_table && passed.value == nullptr) error = -passed.file;
  if (error == 0 && passed.file >= 0) error = plan.pass_file(passed.file);
  if (error == 0) {
    char** environment =
        LaunchEnvironment::build(call.environment, passed.value, target.cannot_load(), scratch);
    const Actions* actions = is_planned ? plan.actions() : call.actions;
    const auto attempt = [&] {
      return start(&child, call.file, actions, call.attributes, call.arguments, environment);
    };
    error = path != nullptr ? start_when_free(attempt, probe) : attempt();
    if (error == 0 && call.pid != nullptr) *call.pid = child;
  }
  if (error != 0 && is_planned) plan.give_up_holds();
  if (error == 0) TransitHolds::name_child(child);
  if (passed.file >= 0) sys::close(passed.file);
  free(scratch);
  return error;
}

int note(int error, Actions* actions, const SpawnAction& action) {
  if (error == 0) SpawnNotes::add(actions, action);
  return error;
}

}  // namespace
}  // namespace cairn

using cairn::Actions;
using cairn::Kind;

CAIRN_HOOK(int, posix_spawn,
           (pid_t * pid, const char* path, const Actions* actions,
            const posix_spawnattr_t* attributes, char* const* arguments,
            char* const* environment)) {
  return cairn::spawn({pid, path, actions, attributes, arguments, environment}, false);
}

CAIRN_HOOK(int, posix_spawnp,
           (pid_t * pid, const char* file, const Actions* actions,
            const posix_spawnattr_t* attributes, char* const* arguments,
            char* const* environment)) {
  return cairn::spawn({pid, file, actions, attributes, arguments, environment}, true);
}

CAIRN_HOOK(int, posix_spawn_file_actions_init, (Actions * actions)) {
  const int error = cairn::real::init(actions);
  if (error == 0) cairn::SpawnNotes::init(actions);
  return error;
}

CAIRN_HOOK(int, posix_spawn_file_actions_destroy, (Actions * actions)) {
  cairn::SpawnNotes::drop(actions);
  return cairn::real::destroy(actions);
}

CAIRN_HOOK(int, posix_spawn_file_actions_adddup2, (Actions * actions, int fd, int to)) {
  return cairn::note(cairn::real::adddup2(actions, fd, to), actions,
                     {.kind = Kind::kDuplicate, .fd = fd, .to = to});
}

CAIRN_HOOK(int, posix_spawn_file_actions_addclose, (Actions * actions, int fd)) {
  return cairn::note(cairn::real::addclose(actions, fd), actions, {.kind = Kind::kClose, .fd = fd});
}

CAIRN_HOOK(int, posix_spawn_file_actions_addopen,
           (Actions * actions, int fd, const char* path, int flags, mode_t mode)) {
  return cairn::note(cairn::real::addopen(actions, fd, path, flags, mode), actions,
                     {.kind = Kind::kOpen,
                      .fd = fd,
                      .flags = flags,
                      .mode = mode,
                      .path = const_cast<char*>(path)});
}

CAIRN_HOOK(int, posix_spawn_file_actions_addchdir_np, (Actions * actions, const char* path)) {
  return cairn::note(cairn::real::addchdir(actions, path), actions,
                     {.kind = Kind::kChangeDirectory, .path = const_cast<char*>(path)});
}

CAIRN_HOOK(int, posix_spawn_file_actions_addfchdir_np, (Actions * actions, int fd)) {
  return cairn::note(cairn::real::addfchdir(actions, fd), actions,
                     {.kind = Kind::kChangeToDescriptor, .fd = fd});
}

CAIRN_HOOK(int, posix_spawn_file_actions_addclosefrom_np, (Actions * actions, int lowest)) {
  return cairn::note(cairn::real::addclosefrom(actions, lowest), actions,
                     {.kind = Kind::kCloseFrom, .fd = lowest});
}

CAIRN_HOOK(int, posix_spawn_file_actions_addtcsetpgrp_np, (Actions * actions, int fd)) {
  return cairn::note(cairn::real::addtcsetpgrp(actions, fd), actions,
                     {.kind = Kind::kSetForeground, .fd = fd});
}
