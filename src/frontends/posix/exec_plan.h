// SPDX-License-Identifier: Apache-2.0
// The arrangements before another program starts in this process or in a vfork child of it, undone
// when the start fails: the environment, the table of inherited descriptors with their holds, and,
// for a program that cannot be intercepted, files that are stored and descriptors that are real.
//
//   collect_inherited()  which of our descriptors the program gets
//   ExecPlan             makes the arrangements; undo() takes them back
//
// Thread safety: any thread. No allocation: the caller gives the memory, because a vfork child
// works on its parent's.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/signal_gate.h"
#include "frontends/processes/elf_probe.h"
#include "frontends/processes/exec_table.h"
#include "frontends/processes/exec_table_file.h"

namespace cairn {

struct OpenFile;

struct Inherited {
  int fd = -1;
  OpenFile* file = nullptr;
  // As they were when the descriptor was collected: another thread may close it any time, and the
  // record becomes that of another file.
  DescriptionIndex index = DescriptionIndex::kNone;
  std::uint32_t generation = 0;
  HoldIndex transit = HoldIndex::kNone;  // made for another process
  // False for a real descriptor: the process held locks on the file, which closing it would drop.
  bool is_placeholder = true;
  // No hold could be made: the program gets a real descriptor (unheld_files.h).
  bool is_unheld = false;
};
static_assert(sizeof(Inherited) <= 32, "an exec has this on its stack for each file");

// Counts on the record of an entry, so that its descriptors stay what they are: a number that
// another thread closes may be another file's a moment later. A vfork child has its own numbers,
// and must not end a record of its parent's: it only looks whether the record is the file's still.
// No handler runs meanwhile: one that jumped out would leave the count behind.
class HeldEntry {
 public:
  explicit HeldEntry(const Inherited& entry);
  ~HeldEntry();
  HeldEntry(const HeldEntry&) = delete;
  HeldEntry& operator=(const HeldEntry&) = delete;

  // False once another thread has closed the file.
  bool is_open() const { return is_open_; }

 private:
  const SignalGateGuard gate_;
  OpenFile* counted_ = nullptr;
  bool is_open_ = true;
};

// Whether the number `fd` of `file` is a placeholder, or may become one again: it is lent to the
// kernel in this process (lent_descriptors.h), not in the next program.
bool is_placeholder_of(int fd, const OpenFile& file);

// False once the description is gone: another thread has closed it.
bool is_still_open(const Inherited& entry);

// Upper bound of what collect_inherited() finds now.
unsigned count_inheritable();
// The tracked descriptors that survive an exec. `is_child`: this is a vfork child, whose kernel
// table is the truth.
unsigned collect_inherited(bool is_child, Inherited* out, unsigned capacity);

// Makes a hold in transit for each entry, which `child` takes over. That process keeps one hold of
// each record and gives the others back: a search for them here would take the square of their
// number. Entries that another thread has closed in the meantime are left out of `*count`. 0, or
// -errno when an entry can be had neither with a hold nor without. `child` may be
// TransitHolds::unborn().
int make_transit_holds(Inherited* entries, unsigned* count, pid_t child);
void release_transit_holds(Inherited* entries, unsigned count, pid_t child);
// The value of CAIRN_FDS, for which the memory is the caller's. `for_child`: the holds are those in
// transit, else the records' own.
inline std::size_t table_bytes(unsigned count) {
  return ExecTableWriter::kHeaderBytesMax + (count + 1) * ExecTableWriter::kEntryBytesMax;
}
// The part of it in the environment itself, beside LaunchEnvironment::build_bytes().
inline std::size_t inline_table_bytes(unsigned count) {
  return std::min(table_bytes(count), kExecTableInlineMax + 1);
}
struct PassedTable {
  const char* value = nullptr;  // null: none could be made
  int file = -1;                // of a long table, close-on-exec: for the caller to close
};
PassedTable write_table(const Inherited* entries, unsigned count, bool for_child, char* buffer);

// Stores a file that the kernel is about to read: the program behind `fd`, or a library.
void store_before_use(int fd);
// Stores all that is dirty on the node, as far as it can be.
void store_everything();
// The kernel's view of the file becomes the truth for as long as this process lives, at the offset
// of our description. Returns the descriptor to pass on; `*is_extra`: the caller closes it
// afterwards. -errno when the file cannot be put into through mode.
int make_real_descriptor(OpenFile& file, bool* is_extra);

// A program that cannot be intercepted, or does not belong to this run.
struct ExecTarget {
  const char* command = "";
  ForeignReason foreign = ForeignReason::kNone;
  bool leaves_run = false;
  bool needs_real_files() const { return foreign != ForeignReason::kNone || leaves_run; }
  bool cannot_load() const {
    return foreign == ForeignReason::kOtherLibc || foreign == ForeignReason::kOtherRoot ||
           foreign == ForeignReason::kOtherArchitecture;
  }
};

// Why the program will not be served although it could be intercepted; kNone: it will be.
ForeignReason reason_of_process();

class ExecPlan {
 public:
  // `table` has table_bytes(count) bytes, `scratch`
  // LaunchEnvironment::build_bytes() + inline_table_bytes(count).
  ExecPlan(const ExecTarget& target, bool is_child, Inherited* entries, unsigned count);
  // Null when the next program cannot get the table: the start fails.
  char** environment(char* const* given, char* table, void* scratch);
  // Why environment() gave none, as -errno.
  int error() const { return error_; }
  void undo();

 private:
  std::span<const Inherited> entries() const { return {entries_, count_}; }
  void withhold_private();
  void let_private_survive(const OpenFile& file, bool survives) const;
  void pass_real_descriptors();
  void pass_placeholders();
  void pass_unheld(const Inherited& entry);

  ExecTarget target_;
  bool is_child_;
  Inherited* entries_;
  unsigned count_;
  int table_file_ = -1;
  int error_ = 0;
};

}  // namespace cairn
