// SPDX-License-Identifier: Apache-2.0
// Verifies a durable log at rest: superblock, segments, the checksum of every record; and repairs
// what can be repaired without guessing.
//
// Thread safety: one check of a log at a time, which the log's lock ensures.
#pragma once

#include <string>
#include <vector>

#include "service/durable_log/log_scan.h"

namespace cairn::durable {

enum class CheckWhat : std::uint8_t { kLook, kRepair };

struct CheckReport {
  std::uint64_t segments = 0;
  std::uint64_t spare = 0;
  ScanReport scan;
  // Each a sentence; those that a repair has ended are in `repaired`.
  std::vector<std::string> problems;
  std::vector<std::string> repaired;
};

// kRepair: makes a missing or damaged superblock again when all segments name the same log, and
// clears what is behind a torn end. Damage in the middle is reported, and stays, and so does a torn
// end beside it.
// Errors: kNotFound; kUnavailable: in use; kIncompatible; of the storage.
Result<CheckReport> check_log(LogStorage& storage, CheckWhat what);

}  // namespace cairn::durable
