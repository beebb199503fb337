// SPDX-License-Identifier: Apache-2.0
#include "frontends/posix/inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/descriptor_floor.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/kernel_descriptors.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/placeholder.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/file_duplicates.h"
#include "frontends/files/file_inheritance.h"
#include "frontends/files/kernel_files.h"
#include "frontends/files/transit_holds.h"
#include "frontends/files/unserved_descriptors.h"
#include "frontends/paths/buffer_candidate.h"
#include "frontends/paths/path_filter.h"
#include "frontends/processes/exec_table.h"
#include "frontends/processes/exec_table_file.h"
#include "frontends/processes/launch_environment.h"

namespace cairn {
namespace {

DescriptionTable& descriptions() { return Session::instance().memory().descriptions(); }

bool is_live_description(std::uint32_t index, std::uint32_t generation) {
  if (index == 0 || index >= descriptions().capacity()) return false;
  const OpenDescription& record = descriptions().at(static_cast<DescriptionIndex>(index));
  return record.generation.load(std::memory_order_acquire) == generation &&
         record.object.load() != 0;
}

ObjectIndex described_object(const OpenDescription& description) {
  return static_cast<ObjectIndex>(description.object.load(std::memory_order_acquire));
}

ObjectKey described_key(const OpenDescription& description) {
  return Session::instance().memory().objects().at(described_object(description)).key();
}

bool is_of_file(int fd, const ObjectKey& key) {
  StoreStatus status;
  return store_status(fd, &status) == 0 && status.key == key;
}

// Whether the descriptor that came along is one of the file, as it was opened.
bool is_usable(int given, const OpenDescription& description) {
  const int flags = given >= 0 ? sys::fcntl(given, F_GETFL) : -1;
  if (flags < 0 || (flags & O_PATH) != 0) return false;
  const auto opened = static_cast<int>(description.flags.load(std::memory_order_relaxed));
  return ((flags ^ opened) & O_ACCMODE) == 0 && is_of_file(given, described_key(description));
}

// The private descriptor that came along, or, when the program before closed it, a new one of the
// same file.
int private_descriptor(int given, int placeholder, const OpenDescription& description) {
  if (is_usable(given, description)) return given;
  const int access =
      static_cast<int>(description.flags.load(std::memory_order_relaxed) & O_ACCMODE);
  char path[kDescriptorPathBytes];
  write_descriptor_path(placeholder, path);
  const int opened = sys::openat(AT_FDCWD, path, access | O_CLOEXEC);
  if (opened < 0) return -1;
  const int made = PrivateDescriptors::make(opened, false);
  if (!PosixLocks::keeps_open(described_object(description), opened)) sys::close(opened);
  return made;
}

// The threads of this process's image before have ended with it, one perhaps in the midst of a
// write. To be noted while the description is still open for writing.
void note_cut_write(Owner from, const OpenDescription& description) {
  const NodeMemory& memory = Session::instance().memory();
  const ClientSlot& before = memory.slot(from.slot());
  const bool may_write =
      (description.flags.load(std::memory_order_relaxed) & O_ACCMODE) != O_RDONLY;
  if (may_write && before.pid.load(std::memory_order_relaxed) == sys::getpid() &&
      before.may_be_writing(described_object(description)))
    memory.objects().note_cut_write(described_object(description));
}

// A hold for this process: the one that was made for it, else a new one while somebody keeps the
// description alive.
HoldIndex take_hold(std::uint32_t hold, Owner from, DescriptionIndex index,
                    std::uint32_t generation) {
  const Owner self = Session::instance().self();
  if (hold != 0 && descriptions().transfer(static_cast<HoldIndex>(hold), from, self, index)) {
    note_cut_write(from, descriptions().at(index));
    return static_cast<HoldIndex>(hold);
  }
  return hold_if_live(index, generation);
}

// The records that have been taken over, by the number of their description. With many of them a
// search for each would take the square of their number.
class TakenOver {
 public:
  explicit TakenOver(bool are_many) {
    if (!are_many) return;
    size_ = descriptions().capacity() * sizeof(OpenFile*);
    void* memory =
        sys::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!sys::is_error(memory)) records_ = static_cast<OpenFile**>(memory);
  }
  ~TakenOver() {
    if (records_ != nullptr) sys::munmap(records_, size_);
  }
  TakenOver(const TakenOver&) = delete;
  TakenOver& operator=(const TakenOver&) = delete;

  OpenFile* find(DescriptionIndex index) const {
    if (records_ != nullptr) return records_[raw(index)];
    OpenFile* found = nullptr;
    DescriptorTable::for_each([&](int, OpenFile& file) {
      if (file.index == index) found = &file;
    });
    return found;
  }
  void note(DescriptionIndex index, int fd) {
    if (records_ != nullptr) records_[raw(index)] = DescriptorTable::find(fd);
  }

 private:
  OpenFile** records_ = nullptr;
  std::size_t size_ = 0;
};

// Each descriptor comes with a hold of its own, and the record has one already.
// A descriptor that is not taken over has one, too.
void give_back_unused(std::uint32_t hold, Owner from, DescriptionIndex index) {
  if (hold == 0 || hold >= descriptions().hold_capacity()) return;
  const DescriptionTable::HoldView seen = descriptions().view(static_cast<HoldIndex>(hold));
  if (seen.kind == HoldKind::kDescriptionInTransit && seen.index == raw(index))
    give_back_hold(static_cast<HoldIndex>(hold), from);
}

// A description that another program of this process, or its parent, passes on.
struct PassedDescription {
  DescriptionIndex index;
  std::uint32_t generation;
  RealDescriptors real;
  std::uint32_t hold = 0;  // made for this process by `from`; 0: none
  Owner from;
};

bool take_over(int fd, const PassedDescription& passed, TakenOver& taken) {
  const DescriptionIndex index = passed.index;
  const int given = passed.real.private_fd;
  if (OpenFile* known = taken.find(index); known != nullptr) {
    note_inherited_duplicate(fd, known);
    give_back_unused(passed.hold, passed.from, index);
    return true;
  }
  const OpenDescription& description = descriptions().at(index);
  const int private_fd = given == fd ? fd : private_descriptor(given, fd, description);
  if (private_fd < 0) return false;
  const int twin = passed.real.twin_fd;
  const RealDescriptors real{private_fd, is_usable(twin, description) ? twin : -1};
  // Past the end of the table the kernel keeps the offset, in the descriptor that all share.
  if (fd >= DescriptorTable::limit() && private_fd != given) return false;
  CAIRN_DCHECK(raw(index) != 0 && raw(index) < descriptions().capacity());
  const HoldIndex held = take_hold(passed.hold, passed.from, index, passed.generation);
  if (held == HoldIndex::kNone) return false;
  if (adopt(fd, index, passed.generation, real, held) == nullptr) return false;
  taken.note(index, fd);
  return true;
}

// For an image that is not served: the files that its process had buffered become the kernel's.
void take_over_table_unserved(const ExecTableReader& table) {
  ExecTableEntry entry;
  for (ExecTableReader reader = table; reader.next(&entry);) {
    if (entry.private_fd < 0 || entry.private_fd == entry.fd || !is_placeholder(entry.fd)) continue;
    const int shared = entry.twin_fd >= 0 ? entry.twin_fd : entry.private_fd;
    make_real_descriptor_of(entry.fd, shared, static_cast<DescriptionIndex>(entry.description),
                            entry.generation);
  }
  // Afterwards only: several numbers may be of one description, and have come with one of these.
  for (ExecTableReader reader = table; reader.next(&entry);) {
    StoreStatus status;
    if (store_status(entry.fd, &status) < 0) continue;
    for (const int fd : {entry.private_fd, entry.twin_fd}) {
      if (fd >= descriptor_floor() && fd != entry.fd && is_of_file(fd, status.key)) sys::close(fd);
    }
  }
}

// Whether the descriptor has come along, which another thread of the parent may have closed.
bool is_there(const ExecTableEntry& entry) {
  if (DescriptorTable::find(entry.fd) != nullptr) return false;
  if (!is_live_description(entry.description, entry.generation)) return false;
  const auto index = static_cast<DescriptionIndex>(entry.description);
  if (!is_of_file(entry.fd, described_key(descriptions().at(index)))) return false;
  // The program before had lent it to the kernel.
  const bool was_lent = entry.private_fd != entry.fd && !is_placeholder(entry.fd);
  return !was_lent || place_placeholder(entry.fd, false);
}

void take_over_table(ExecTableReader& reader, bool is_long) {
  TakenOver taken(is_long);
  const Owner from = Owner::from_bits(reader.header().owner);
  ExecTableEntry entry;
  while (reader.next(&entry)) {
    const auto index = static_cast<DescriptionIndex>(entry.description);
    if (entry.is_locked && is_live_description(entry.description, entry.generation))
      PosixLocks::note(described_object(descriptions().at(index)));
    const RealDescriptors real{entry.private_fd, entry.twin_fd};
    if (!is_there(entry) ||
        !take_over(entry.fd, {index, entry.generation, real, entry.hold, from}, taken))
      give_back_unused(entry.hold, from, index);
  }
}

// libc passed descriptors on by itself: finds the real ones of the file among them, highest number
// first.
RealDescriptors stray_real_descriptors(const ObjectKey& key) {
  RealDescriptors found;
  for_each_kernel_descriptor([&](int fd) {
    if (fd < descriptor_floor() || PrivateDescriptors::is_private(fd)) return;
    const int flags = sys::fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_PATH) != 0 || !is_of_file(fd, key)) return;
    int& known = (flags & (O_APPEND | O_DIRECT)) != 0 ? found.twin_fd : found.private_fd;
    known = std::max(known, fd);
  });
  return found;
}

bool is_client(pid_t process) {
  const NodeMemory& memory = Session::instance().memory();
  for (std::uint32_t slot = 0; slot < memory.slot_count(); ++slot) {
    if (memory.slot(static_cast<std::uint16_t>(slot)).pid.load() == process) return true;
  }
  return false;
}

// The description of the file that the parent holds; any other holder's when the parent has gone.
DescriptionIndex description_of_parent(const ObjectKey& key, int private_fd) {
  const NodeMemory& memory = Session::instance().memory();
  const pid_t parent = sys::getppid();
  const int flags = private_fd >= 0 ? sys::fcntl(private_fd, F_GETFL) : -1;
  DescriptionIndex best = DescriptionIndex::kNone;
  for (std::uint32_t index = 1; index < descriptions().hold_capacity(); ++index) {
    const DescriptionTable::HoldView hold = descriptions().view(static_cast<HoldIndex>(index));
    if (hold.kind != HoldKind::kDescription || !memory.owners().is_alive(hold.owner)) continue;
    const auto candidate = static_cast<DescriptionIndex>(hold.index);
    const OpenDescription& record = descriptions().at(candidate);
    if (record.object.load() == 0 || !(described_key(record) == key)) continue;
    if (flags >= 0 && ((record.flags.load() ^ static_cast<unsigned>(flags)) & O_ACCMODE) != 0)
      continue;
    if (memory.slot(hold.owner.slot()).pid.load() == parent) return candidate;
    best = candidate;
  }
  if (is_client(parent)) return DescriptionIndex::kNone;
  return best;
}

void take_over_stray_placeholder(int fd, const StoreStatus& status) {
  Session& session = Session::instance();
  const bool is_served = session.attach();
  if (!is_served && session.use_unserved(fd) < 0) return;
  if (!is_served || session.memory().objects().find(status.key) == ObjectIndex::kNone) {
    // Nobody buffers it any more: a plain descriptor serves.
    char path[kDescriptorPathBytes];
    write_descriptor_path(fd, path);
    int plain = sys::openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (plain < 0) plain = sys::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (plain < 0) return;
    sys::dup3(plain, fd, 0);
    sys::close(plain);
    return;
  }
  const RealDescriptors real = stray_real_descriptors(status.key);
  const DescriptionIndex index = description_of_parent(status.key, real.private_fd);
  if (index == DescriptionIndex::kNone) return;
  const std::uint32_t generation =
      descriptions().at(index).generation.load(std::memory_order_acquire);
  TakenOver taken(false);
  take_over(fd, {.index = index, .generation = generation, .real = real}, taken);
}

// Ledger connections that came through exec.
constexpr unsigned kLedgersMax = 8;
int ledgers[kLedgersMax];
unsigned ledger_count = 0;

void note_ledger(int fd) {
  const Session& session = Session::instance();
  if (ledger_count == kLedgersMax || session.owns_descriptor(fd)) return;
  if (LedgerConnection::is_one(fd, session.socket_path())) ledgers[ledger_count++] = fd;
}

// `has_table`: the program before has said which of its descriptors are placeholders; any other
// O_PATH descriptor is the application's own.
void look_at(int fd, bool has_table) {
  if (DescriptorTable::find(fd) != nullptr || PrivateDescriptors::is_private(fd)) return;
  StoreStatus status;
  if (store_status(fd, &status) < 0) return;
  if (S_ISSOCK(status.mode)) note_ledger(fd);
  if (!S_ISREG(status.mode)) return;
  PathFilter::resolve();
  if (is_placeholder(fd)) {
    if (!has_table && PathFilter::manages(fd)) take_over_stray_placeholder(fd, status);
  } else if (PathFilter::manages(fd) || is_buffered_by_others(fd, status.key)) {
    // A file that cannot be shared answers EBADF from here on.
    if (KernelFiles::share(fd, status) < 0) refuse_descriptor(fd);
  }
}

}  // namespace

void inherit_descriptors(char** environment) {
  const ExecTableText text(find_variable(environment, kExecTableVariable));
  ExecTableReader reader(text.text());
  Session& session = Session::instance();
  // The program before in this process was attached: the node hears of its successor at once, and
  // closes the files that it did not pass on.
  const bool succeeds = reader.header().pid == sys::getpid() && reader.header().owner != 0;
  if (succeeds || !reader.is_empty()) {
    if (session.attach()) {
      take_over_table(reader, text.is_long());
    } else {
      take_over_table_unserved(reader);
    }
  }
  const bool has_table = reader.is_valid();
  for_each_descriptor_of_thread([has_table](int fd) { look_at(fd, has_table); });
  if (succeeds) session.notify_inherited();
  while (ledger_count > 0) LedgerConnection::take_over(ledgers[--ledger_count]);
  remove_variable(environment, kExecTableVariable);
}

}  // namespace cairn
