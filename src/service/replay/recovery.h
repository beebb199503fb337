// SPDX-License-Identifier: Apache-2.0
// Brings what a durable log has to the backing store: after a machine's death, before a node uses
// the tier again, or by command.
//
// First names get the files that the log says they mean (name_replay.h). Then, for each file, in
// the order of the log:
//   it is where the log says, or found by its handle or in the   its bytes, size and time are set
//   same folder, and nobody else has changed it
//   somebody else has changed it                                 NAME.cairn-recovered beside it
//   it never reached the store, and the log has all of it        it is made anew, 0600
//   it is gone, its folder is gone, or it may not be written     a file in the rescue folder, and a
//                                                                line in its list
//   the store fails, is full or is not mounted                   it stays in the log, or goes to
//                                                                the rescue folder (options)
//
// It may be killed at any moment and run again: a file counts as stored only by a durable record,
// which follows a flush of the file, and before its first change the log says that recovery is at
// work on it. Nothing is written twice: the newest bytes of each range win.
//
// Thread safety: one recovery of a tier at a time, which the tier's lock ensures.
// Errors: a Status when recovery cannot begin or its log fails; all else is in the report.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/durable_log/log_scan.h"

namespace cairn::durable {

enum class Outcome : std::uint8_t {
  kRestored,  // in place
  kMadeAnew,  // at its path, where nothing was
  kBeside,    // in a file beside the one that somebody else has changed
  kRescued,   // in the rescue folder
  kKept,      // still in the log: run recovery again
};

struct RecoveredFile {
  std::string path;     // where it should be
  std::string written;  // where it is now, kKept: as the store has it; empty: nowhere else
  Outcome outcome = Outcome::kRestored;
  int error = 0;  // why it is not in place; positive errno
  std::uint64_t bytes = 0;
  bool is_private = false;         // kMadeAnew: its mode was not known
  bool has_foreign_parts = false;  // kBeside: some of it is from the file as it was found
  // Ranges [begin, end) that were damaged in the log.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> damaged;
};

struct RecoveryReport {
  std::vector<RecoveredFile> files;
  ScanReport scan;
  std::uint64_t bytes = 0;
  std::uint64_t names = 0;  // that meant something else on the store than in the log
  // Everything is at its place or beside it, and nothing of the log is damaged.
  bool is_complete() const;
};

struct RecoveryOptions {
  // Look and tell, change nothing.
  bool dry_run = false;
  // Also while programs of the dead node run: the user knows that they change nothing any more.
  bool beside_programs = false;
  // For files that have no place; empty: kRescueFolder beside the log. Made, 0700, when needed.
  std::string rescue_folder;
  // A file whose store fails, or is full, goes there as well, instead of waiting in the log.
  bool rescues_trouble = false;
  // Hears of bytes done and of all bytes.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress;
  // For tests: called before each step that changes anything.
  std::function<void(const char* step)> at_step;
};

inline constexpr const char* kRescueFolder = "cairn-rescued";

// Errors: kNotFound: no durable tier there; kUnavailable: a node uses it; others of the log.
Result<RecoveryReport> recover(const std::string& tier_directory, const RecoveryOptions& options);

}  // namespace cairn::durable
