// SPDX-License-Identifier: Apache-2.0
// Finds the file that the log means, and tells whether anybody else has changed it.
//
// Thread safety: system calls. Ownership: the descriptor is the caller's.
#pragma once

#include <string>

#include "service/replay/log_index.h"

namespace cairn::durable {

enum class FileVerdict : std::uint8_t {
  kFound,    // it is there and ours: open for reading and writing
  kChanged,  // it is there, open for reading, and somebody else has changed it
  kNew,      // it never reached the store: it may be made anew at its path
  kGone,     // it is nowhere, or something else has its name
  kDenied,   // it is there and must not be written; error says why
  kTrouble,  // the store does not answer as it should; error says what
};

struct FoundFile {
  FileVerdict verdict = FileVerdict::kGone;
  int fd = -1;
  std::string path;  // where it is now
  int error = 0;
  bool is_taken = false;  // kGone, it never reached the store, and another file has its path
};

FoundFile find_file(const PendingFile& file);

// Whether what is open as `fd` is that file and no later one that got its inode's number: by its
// handle, or else by its time of birth.
bool is_certainly(const PendingFile& file, int fd);

// The nearest folder above the path that is there, open; -1 if none is.
int open_folder_above(const std::string& path);
// 0, or ENODEV when the file system of that folder is not the one that the file was on: its own is
// not mounted. Where either has no name it is 0.
int fault_of_store(const PendingFile& file, int folder);

// The folder of a path; "." for one without.
std::string folder_of(const std::string& path);

// Whether the file's size and time on the store come from the log or from what the service was
// doing when it died. `boot` and `booted_ns`: this start of the machine.
bool is_explained(const PendingFile& file, const FileState& now, std::uint64_t boot,
                  std::int64_t booted_ns);

// Whether the machine has been started anew since the service wrote the file to its store. `boot`:
// this start; 0 where the kernel does not tell.
bool has_restarted(const PendingFile& file, std::uint64_t boot);

// When this machine was started, CLOCK_REALTIME.
std::int64_t booted_at_ns();

}  // namespace cairn::durable
