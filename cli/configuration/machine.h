// SPDX-License-Identifier: Apache-2.0
//
// Looks at the machine: memory and the cgroup's limit on it, and directories that suit a tier.
//
// Every function takes the roots it reads from, so that tests can show it another machine.
//
// Thread safety: pure reads of the system. Ownership: results are values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "service/profiler/directory_state.h"
#include "service/profiler/system_text.h"

namespace cairn::cli {

using profiler::DirectoryState;
using profiler::MachineRoots;
using profiler::read_directory_state;

struct MemoryState {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;
  // The tightest memory cgroup limit (version 1 or 2) above this process, and its unused rest.
  std::optional<uint64_t> limit_bytes;
  std::optional<uint64_t> limit_left_bytes;
  std::string limit_file;  // where the limit was read
};

MemoryState read_memory_state(const MachineRoots& roots = {});

// A quarter of the available memory, or of the cgroup's rest where that is less. Rounded down to
// 1 MiB.
uint64_t default_ram_capacity(const MemoryState& memory);

// The largest RAM tier that can be true on this machine.
uint64_t ram_capacity_max(const MemoryState& memory);

struct FoundTier {
  std::string directory;
  uint64_t capacity_bytes = 0;
  std::string reason;  // "non-rotational disk nvme0n1, 800 GiB free"
};

// A file tier's place by looking: a local non-rotational disk, not the one that holds any of the
// buffered directories, not in memory, writable, at least 20 % and 16 GiB free. It takes half of
// the free space, 256 GiB at most.
std::optional<FoundTier> find_file_tier(const std::vector<std::string>& candidates,
                                        const std::vector<std::string>& buffered_directories,
                                        const MachineRoots& roots = {});

// $CAIRN_TIER_DIR, /local, /scratch/local, /mnt/nvme*, $TMPDIR, /var/tmp: those that exist.
std::vector<std::string> tier_directory_candidates();

}  // namespace cairn::cli
