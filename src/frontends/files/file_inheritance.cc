// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/file_inheritance.h"

#include <fcntl.h>

#include <new>
#include <utility>

#include "base/check.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file_pool.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/direct_io.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/kernel_aio.h"
#include "frontends/files/kernel_files.h"
#include "frontends/files/mappings.h"
#include "frontends/files/transit_holds.h"
#include "frontends/files/unheld_files.h"

namespace cairn {
namespace {

// At a number past the end of the table, the file is the kernel's for all who share it.
void leave_untracked(int fd, OpenFile& file) {
  (void)share_unheld(file);
  become_plain(fd, file);
  (void)release_record(file);
  file.count.clear();
  discard_record(file, fd);
}

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
  if (!file.count.drop_descriptor()) return;
  discard_record(file, fd);
}

}  // namespace

OpenFile* adopt(int fd, DescriptionIndex index, std::uint32_t generation, RealDescriptors real,
                HoldIndex hold) {
  Session& session = Session::instance();
  if (!session.is_attached() || fd < 0) return nullptr;
  DescriptionTable& descriptions = session.memory().descriptions();
  if (raw(index) == 0 || raw(index) >= descriptions.capacity()) return nullptr;
  OpenDescription& description = descriptions.at(index);
  if (description.generation.load(std::memory_order_acquire) != generation) return nullptr;
  CAIRN_DCHECK(real.private_fd >= 0 && hold != HoldIndex::kNone);
  OpenFile* file = OpenFilePool::take();
  if (file == nullptr) return nullptr;
  const int access_mode =
      static_cast<int>(description.flags.load(std::memory_order_relaxed) & O_ACCMODE);
  file->description = &description;
  file->object = static_cast<ObjectIndex>(description.object.load(std::memory_order_acquire));
  file->may_read = access_mode != O_WRONLY;
  file->may_write = access_mode != O_RDONLY;
  file->backing = new (file->backing_storage) PosixBacking(real.private_fd, access_mode);
  file->backing->note_shared();
  file->twin_fd = real.twin_fd;
  file->index = index;
  file->generation = generation;
  file->hold = hold;
  note_direct_flag(*file);
  file->count.begin();
  PrivateDescriptors::add(real.twin_fd);
  if (real.private_fd != fd) {
    PrivateDescriptors::add(real.private_fd);
  } else {
    PrivateDescriptors::note_file_in_place();
  }
  if (__builtin_expect(fd >= DescriptorTable::limit(), 0)) {
    leave_untracked(fd, *file);
    return nullptr;
  }
  release_displaced(DescriptorTable::set(fd, file), fd);
  return file;
}

HoldIndex hold_if_live(DescriptionIndex index, std::uint32_t generation, HoldKind kind) {
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
    made = descriptions.hold(index, session.self(), kind);
  if (record.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return made;
  CAIRN_DCHECK(made == HoldIndex::kNone);
  // It is another one by now, and all others have let go of it in the meantime.
  close_description(index);
  return HoldIndex::kNone;
}

void take_over_holds(Owner parent) {
  Session& session = Session::instance();
  const DescriptionTable& descriptions = session.memory().descriptions();
  const Owner self = session.self();
  DescriptorTable::for_each([&](int fd, OpenFile& file) {
    // Each record once: a hold that names this process already has been taken over.
    if (file.hold != HoldIndex::kNone && descriptions.view(file.hold).owner == self) return;
    const bool is_shared = file.transit == HoldIndex::kNone && file.is_kept_through;
    file.hold = is_shared ? HoldIndex::kNone : take_over_hold(file, parent, self);
    CAIRN_DCHECK(file.transit == HoldIndex::kNone);
    if (file.hold == HoldIndex::kNone) give_up(fd, file);
  });
  KernelAio::begin_process();
  Mappings::count_again();
  KernelFiles::count_again();
}

}  // namespace cairn
