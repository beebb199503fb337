// SPDX-License-Identifier: Apache-2.0
// A file that recovery makes: written under a passing name, flushed, and then given its name, so
// that a recovery that dies leaves a whole file or none, and the next one makes the same.
//
// Thread safety: system calls. Ownership: closes what it opens.
#pragma once

#include <optional>
#include <string>

#include "service/replay/extent_copy.h"

namespace cairn::durable {

enum class WhenTaken : std::uint8_t { kOtherName, kFail, kReplace };

struct CopyOrder {
  std::string folder;
  std::string name;
  // Ranges that the log does not have come from here; -1: they are holes.
  int base = -1;
  // The name is taken by a file with other content: go on to NAME.2, NAME.3 and so on, or give
  // up, or take it away.
  WhenTaken when_taken = WhenTaken::kOtherName;
  // The file gets it, as far as the caller may give it; none: 0600.
  std::optional<FileOwner> owner = std::nullopt;
};

struct SavedCopy {
  int error = 0;  // positive errno
  std::string path;
  CopyResult copy;
};

// Makes the file with the size and time of the log. A file of the name with the same content
// is taken for the one of an earlier attempt.
SavedCopy save_copy(ExtentCopy& extents, const PendingFile& file, const CopyOrder& order);

// Whether the two open files have the same bytes.
bool has_same_bytes(int left, int right);

// Sets the time of modification. Returns: 0 or errno.
int set_mtime(int fd, std::int64_t mtime_ns);
// Mode and owner, as far as the caller may set them: to another user only root can give a file.
void give_to(int fd, const FileOwner& owner);
int sync_folder_of(const std::string& folder);

}  // namespace cairn::durable
