// SPDX-License-Identifier: Apache-2.0
#include "frontends/posix/exec_plan.h"

#include <errno.h>
#include <fcntl.h>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/kernel_descriptors.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/placeholder.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/file_inheritance.h"
#include "frontends/files/kernel_files.h"
#include "frontends/files/live_objects.h"
#include "frontends/files/transit_holds.h"
#include "frontends/files/unheld_files.h"
#include "frontends/paths/path_filter.h"
#include "frontends/processes/launch_environment.h"
#include "frontends/processes/vfork_shadow.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace {

// A descriptor that libc closed behind our back fails the test.
bool is_as_noted(int fd, const OpenFile& file) {
  StoreStatus status;
  return store_status(fd, &status) == 0 &&
         Session::instance().memory().objects().at(file.object).key() == status.key;
}

// As its parent knows it; 0 in a PID namespace of its own, and where somebody else is its parent.
pid_t number_of_vfork_child() {
  const pid_t parent = process_page.pid.load(std::memory_order_relaxed);
  return sys::getppid() == parent ? sys::getpid() : 0;
}

// The record behind a descriptor of a vfork child: as noted, or as the parent's table says.
OpenFile* record_in_child(int fd) {
  OpenFile* noted = VforkShadow::find(fd, DescriptorTable::find(fd));
  if (noted != nullptr && is_as_noted(fd, *noted)) return noted;
  if (VforkShadow::is_complete() || !is_placeholder(fd)) return nullptr;
  // More descriptors were moved than could be noted: any record of the same file is better than
  // none.
  StoreStatus status;
  if (store_status(fd, &status) < 0) return nullptr;
  const ObjectTable& objects = Session::instance().memory().objects();
  OpenFile* file = nullptr;
  DescriptorTable::for_each([&](int, OpenFile& other) {
    if (objects.at(other.object).key() == status.key) file = &other;
  });
  return file;
}

}  // namespace

HeldEntry::HeldEntry(const Inherited& entry) {
  if (!is_vfork_child()) {
    is_open_ = entry.file->count.add_call();
    if (!is_open_) return;
    counted_ = entry.file;
  }
  is_open_ = entry.file->index == entry.index && entry.file->generation == entry.generation;
}

HeldEntry::~HeldEntry() {
  if (counted_ != nullptr) release_held(*counted_);
}

bool is_placeholder_of(int fd, const OpenFile& file) {
  return is_placeholder(fd) || PrivateDescriptors::is_private(file.private_fd());
}

bool is_still_open(const Inherited& entry) {
  const OpenDescription& description = Session::instance().memory().descriptions().at(entry.index);
  return description.generation.load(std::memory_order_acquire) == entry.generation &&
         description.references.load(std::memory_order_acquire) != 0;
}

unsigned count_inheritable() {
  if (!DescriptorTable::any()) return 0;
  unsigned count = 0;
  DescriptorTable::for_each([&](int, OpenFile&) { ++count; });
  return count + VforkShadow::kNotes;
}

unsigned collect_inherited(bool is_child, Inherited* out, unsigned capacity) {
  if (!DescriptorTable::any()) return 0;
  unsigned count = 0;
  const auto add = [&](int fd, OpenFile* file) {
    if (file == nullptr || count == capacity) return;
    out[count++] = Inherited{.fd = fd,
                             .file = file,
                             .index = file->index,
                             .generation = file->generation,
                             .is_placeholder = is_placeholder_of(fd, *file)};
  };
  if (is_child) {
    for_each_kernel_descriptor([&](int fd) {
      if (survives_exec(fd)) add(fd, record_in_child(fd));
    });
  } else {
    DescriptorTable::for_each([&](int fd, OpenFile& file) {
      if (survives_exec(fd) && is_as_noted(fd, file)) add(fd, &file);
    });
  }
  return count;
}

int make_transit_holds(Inherited* entries, unsigned* count, pid_t child) {
  TransitHolds::settle();
  unsigned kept = 0;
  for (unsigned index = 0; index < *count; ++index) {
    Inherited& entry = entries[kept];
    entry = entries[index];
    CAIRN_DCHECK(entry.transit == HoldIndex::kNone);
    entry.file->backing->note_shared();
    entry.transit = hold_if_live(entry.index, entry.generation, HoldKind::kDescriptionInTransit);
    if (entry.transit != HoldIndex::kNone) {
      TransitHolds::note(entry.transit, child);
    } else if (!is_still_open(entry)) {
      continue;
    } else {
      entry.is_unheld = true;
      const HeldEntry held(entry);
      if (!held.is_open()) continue;
      if (const int error = share_unheld(*entry.file); error < 0) return error;
    }
    ++kept;
  }
  *count = kept;
  return 0;
}

void release_transit_holds(Inherited* entries, unsigned count, pid_t child) {
  TransitHolds::forget(child);
  for (unsigned index = 0; index < count; ++index) {
    if (entries[index].transit == HoldIndex::kNone) continue;
    give_back_hold(entries[index].transit, Session::instance().self());
    entries[index].transit = HoldIndex::kNone;
  }
}

PassedTable write_table(const Inherited* entries, unsigned count, bool for_child, char* buffer) {
  const Session& session = Session::instance();
  ExecTableWriter writer(buffer, table_bytes(count),
                         ExecTableHeader{.pid = process_page.pid.load(std::memory_order_relaxed),
                                         .owner = session.self().bits()});
  for (unsigned index = 0; index < count; ++index) {
    const OpenFile& file = *entries[index].file;
    if (entries[index].is_unheld) continue;
    CAIRN_DCHECK(!for_child || entries[index].transit != HoldIndex::kNone);
    writer.add(ExecTableEntry{
        .fd = entries[index].fd,
        .description = raw(entries[index].index),
        .generation = entries[index].generation,
        .private_fd = entries[index].is_placeholder ? file.private_fd() : entries[index].fd,
        .twin_fd = file.twin_fd,
        .is_locked = !for_child && PosixLocks::may_pass_exec(file.object),
        .hold = raw(for_child ? entries[index].transit : file.hold)});
  }
  CAIRN_DCHECK(writer.is_complete());
  if (writer.size() <= kExecTableInlineMax) return {.value = writer.text()};
  // Behind the text is room, for more entries than there are.
  static_assert(ExecTableWriter::kEntryBytesMax > kExecTableReferenceBytes);
  char* reference = buffer + writer.size() + 1;
  const int file = write_exec_table_file(writer.text(), writer.size(), reference);
  return {.value = file >= 0 ? reference : nullptr, .file = file};
}

void store_before_use(int fd) {
  // A forked child that has not attached can look into its parent's mapping of the memory; only a
  // question needs an attachment.
  Session& session = Session::instance();
  if (session.standing() == Standing::kUnserved) {
    PathFilter::resolve();
    if (PathFilter::manages(fd)) (void)session.use_unserved(fd);
  }
  if (!session.has_memory() || session.memory().objects().live_count() == 0) return;
  StoreStatus status;
  if (store_status(fd, &status) < 0) return;
  const ObjectIndex index = session.memory().objects().find(status.key);
  if (index == ObjectIndex::kNone) return;
  // The kernel does not run a file that any process has open for writing: the service gives its
  // descriptor up after the flush.
  const Object& object = session.memory().objects().at(index);
  if (object.dirty_blocks.load(std::memory_order_acquire) != 0 || object.has(kObjectHandedOver) ||
      object.size.load(std::memory_order_acquire) != status.stamp.size) {
    if (session.attach()) session.request_flush(index, false);
  }
}

ForeignReason reason_of_process() {
  if (Session::instance().has_other_user()) return ForeignReason::kOtherUser;
  return LaunchEnvironment::is_reachable() ? ForeignReason::kNone : ForeignReason::kOtherRoot;
}

void store_everything() {
  Session& session = Session::instance();
  if (!session.attach()) return session.store_everything_unserved(program_invocation_short_name);
  for_each_live_object(session.memory().objects(), [&](ObjectIndex index, const Object& object) {
    if (object.dirty_blocks.load(std::memory_order_acquire) != 0 && !object.has(kObjectUnlinked))
      session.request_flush(index, false);
    return true;
  });
}

int make_real_descriptor(OpenFile& file, bool* is_extra) {
  *is_extra = false;
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return file.private_fd();
  const int error = share_unheld(file, protocol::UnservedReason::kNone);
  return error < 0 ? error : plain_descriptor(file, is_extra);
}

ExecPlan::ExecPlan(const ExecTarget& target, bool is_child, Inherited* entries, unsigned count)
    : target_(target), is_child_(is_child), entries_(entries), count_(count) {
  CAIRN_DCHECK(entries != nullptr || count == 0);
  if (is_child_) withhold_private();
  if (target_.needs_real_files()) {
    store_everything();
    KernelFiles::keep_for_program();
    pass_real_descriptors();
    if (target_.foreign != ForeignReason::kNone)
      Session::instance().notify_foreign(target_.command, text_of(target_.foreign));
  } else {
    pass_placeholders();
  }
  if (!is_child_) PosixLocks::set_kept_survive_exec(true);
}

// The private descriptor of a file survives an exec as long as one of its numbers in this process
// does. A vfork child may have closed them all: its program would get a descriptor that nobody has
// passed on, and the file with it. Those of `entries_` are passed on afterwards.
void ExecPlan::withhold_private() {
  // A number that is not in `entries_` may be one of ours.
  if (!VforkShadow::is_complete()) return;
  DescriptorTable::for_each([this](int, OpenFile& file) { let_private_survive(file, false); });
}

void ExecPlan::let_private_survive(const OpenFile& file, bool survives) const {
  for (const int fd : file.real_fds()) {
    // What a child has put at such a number is the program's.
    if (!PrivateDescriptors::is_private(fd) || (is_child_ && VforkShadow::has_note(fd))) continue;
    sys::fcntl(fd, F_SETFD, survives ? 0 : FD_CLOEXEC);
  }
}

void ExecPlan::pass_placeholders() {
  if (is_child_) error_ = make_transit_holds(entries_, &count_, number_of_vfork_child());
  if (error_ < 0) return;
  for (const Inherited& entry : entries()) {
    if (entry.is_unheld) pass_unheld(entry);
  }
  // A file may have numbers of both kinds: those that are held need its private descriptor.
  for (const Inherited& entry : entries()) {
    if (!entry.is_unheld && entry.is_placeholder) let_private_survive(*entry.file, true);
  }
}

void ExecPlan::pass_unheld(const Inherited& entry) {
  become_plain(entry.fd, *entry.file);
  if (entry.is_placeholder) let_private_survive(*entry.file, false);
}

void ExecPlan::pass_real_descriptors() {
  for (unsigned index = 0; index < count_; ++index) {
    const HeldEntry held(entries_[index]);
    if (!held.is_open()) continue;
    bool is_extra = false;
    const int real = make_real_descriptor(*entries_[index].file, &is_extra);
    if (real < 0) error_ = real;
    if (real < 0) return;
    if (entries_[index].is_placeholder) sys::dup3(real, entries_[index].fd, 0);
    if (!is_extra) continue;
    if (PosixLocks::keeps_open(entries_[index].file->object, real)) {
      sys::fcntl(real, F_SETFD, 0);
    } else {
      sys::close(real);
    }
  }
  // What remains of ours would only be a leak to the program; where closing it would drop locks,
  // which an exec keeps, it is one.
  for (unsigned index = 0; index < count_; ++index) {
    const OpenFile& file = *entries_[index].file;
    const bool is_locked = !is_child_ && PosixLocks::is_locked(file.object);
    let_private_survive(file, is_locked);
  }
}

char** ExecPlan::environment(char* const* given, char* table, void* scratch) {
  // An empty table says that the program has no descriptor of ours, whatever its own look like.
  if (error_ < 0) return nullptr;
  const bool has_table = !target_.needs_real_files();
  PassedTable passed;
  if (has_table) passed = write_table(entries_, count_, is_child_, table);
  if (has_table && passed.value == nullptr) error_ = passed.file;
  if (error_ < 0) return nullptr;
  table_file_ = passed.file;
  if (table_file_ >= 0) sys::fcntl(table_file_, F_SETFD, 0);
  return LaunchEnvironment::build(given, passed.value, target_.cannot_load(), scratch);
}

void ExecPlan::undo() {
  if (!is_child_) PosixLocks::set_kept_survive_exec(false);
  if (table_file_ >= 0) sys::close(table_file_);
  for (unsigned index = 0; index < count_; ++index) {
    OpenFile& file = *entries_[index].file;
    const bool is_real = target_.needs_real_files() || entries_[index].is_unheld;
    if (is_real && entries_[index].is_placeholder) {
      char path[kDescriptorPathBytes];
      write_descriptor_path(file.private_fd(), path);
      const int placeholder = sys::openat(AT_FDCWD, path, O_PATH | O_CLOEXEC);
      if (placeholder >= 0) {
        sys::dup3(placeholder, entries_[index].fd, 0);
        sys::close(placeholder);
      }
    }
    // All of them were to survive.
    if (!is_child_) let_private_survive(file, true);
  }
  if (is_child_) release_transit_holds(entries_, count_, number_of_vfork_child());
}

}  // namespace cairn
