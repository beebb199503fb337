// SPDX-License-Identifier: Apache-2.0
// What a thread has waited for in files, and written to them, and has not told the service yet:
// sums of some files, so that many small calls become one event.
//
// A thread tells the first wait in a file at once, and later ones when there is enough (kTellBytes,
// kTellCycles), when the file's place goes to another one, and when it closes the file. A process
// that ends without closing its files keeps less than that to itself.
//
// Thread safety: none; of one thread, as its Actor. Units: bytes, cycles of cycle_count().
#pragma once

#include <array>
#include <cstdint>

#include "base/ids.h"
#include "memory/arena/owner.h"

namespace cairn {

class NodeMemory;

struct FileWait {
  ObjectIndex object = ObjectIndex::kNone;
  DescriptionIndex stream = DescriptionIndex::kNone;
  std::int32_t descriptor = -1;
  std::uint64_t written_bytes = 0;
  std::uint64_t read_cycles = 0;   // in reads that were no hits in RAM
  std::uint64_t write_cycles = 0;  // in writes
};

// How an event of the kind kWaited carries the two times: each in units of so many cycles, the
// reads' in the upper half. 2^32 units are five minutes at 3 GHz; what is longer counts as that.
struct WaitTimes {
  static constexpr std::uint64_t kUnitCycles = 256;

  std::uint64_t read_cycles = 0;
  std::uint64_t write_cycles = 0;

  std::uint64_t packed() const;
  static WaitTimes from_packed(std::uint64_t word);
};

class WaitSums {
 public:
  static constexpr std::uint64_t kTellBytes = std::uint64_t{1} << 20;
  static constexpr std::uint64_t kTellCycles = std::uint64_t{1} << 27;  // 45 ms at 3 GHz
  static constexpr std::size_t kFiles = 4;

  // Requires: `wait` names a file.
  void add(const NodeMemory& memory, Owner self, const FileWait& wait);
  // Tells what there is of the file.
  void tell_of(const NodeMemory& memory, Owner self, ObjectIndex object);
  void tell_all(const NodeMemory& memory, Owner self);

 private:
  FileWait& place_of(ObjectIndex object) { return sums_[raw(object) % kFiles]; }

  std::array<FileWait, kFiles> sums_;
};

}  // namespace cairn
