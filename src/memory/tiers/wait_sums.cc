// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/wait_sums.h"

#include <algorithm>

#include "base/check.h"
#include "base/cycle_clock.h"
#include "memory/tiers/node_memory.h"

namespace cairn {
namespace {

bool is_nothing(const FileWait& sum) {
  return (sum.written_bytes | sum.read_cycles | sum.write_cycles) == 0;
}

void tell_wait(const NodeMemory& memory, Owner self, FileWait* sum) {
  CAIRN_DCHECK(sum->object != ObjectIndex::kNone);
  AccessEvent event;
  event.offset = WaitTimes{sum->read_cycles, sum->write_cycles}.packed();
  event.cycles = cycle_count();
  event.object = sum->object;
  event.length =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(sum->written_bytes, UINT32_MAX));
  event.stream = sum->stream;
  event.descriptor = sum->descriptor;
  event.owner = self;
  event.kind = AccessKind::kWaited;
  memory.tell(event);
  sum->written_bytes = 0;
  sum->read_cycles = 0;
  sum->write_cycles = 0;
}

}  // namespace

std::uint64_t WaitTimes::packed() const {
  const auto units = [](std::uint64_t cycles) {
    return std::min<std::uint64_t>((cycles + kUnitCycles / 2) / kUnitCycles, UINT32_MAX);
  };
  return units(read_cycles) << 32 | units(write_cycles);
}

WaitTimes WaitTimes::from_packed(std::uint64_t word) {
  return {(word >> 32) * kUnitCycles, (word & UINT32_MAX) * kUnitCycles};
}

void WaitSums::add(const NodeMemory& memory, Owner self, const FileWait& wait) {
  CAIRN_DCHECK(wait.object != ObjectIndex::kNone);
  FileWait& sum = place_of(wait.object);
  const bool is_first = sum.object != wait.object;
  if (is_first) {
    if (sum.object != ObjectIndex::kNone && !is_nothing(sum)) tell_wait(memory, self, &sum);
    sum = wait;
  } else {
    sum.stream = wait.stream;
    sum.descriptor = wait.descriptor;
    sum.written_bytes += wait.written_bytes;
    sum.read_cycles += wait.read_cycles;
    sum.write_cycles += wait.write_cycles;
  }
  const bool is_enough =
      sum.written_bytes >= kTellBytes || sum.read_cycles + sum.write_cycles >= kTellCycles;
  if (is_first || is_enough) tell_wait(memory, self, &sum);
}

void WaitSums::tell_of(const NodeMemory& memory, Owner self, ObjectIndex object) {
  CAIRN_DCHECK(object != ObjectIndex::kNone);
  FileWait& sum = place_of(object);
  if (sum.object != object) return;
  if (!is_nothing(sum)) tell_wait(memory, self, &sum);
  sum = {};
}

void WaitSums::tell_all(const NodeMemory& memory, Owner self) {
  for (FileWait& sum : sums_) {
    if (sum.object != ObjectIndex::kNone) tell_of(memory, self, sum.object);
  }
}

}  // namespace cairn
