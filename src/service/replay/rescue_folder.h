// SPDX-License-Identifier: Apache-2.0
// The folder for what has no place on the store any more: one file each, and a list that says which
// file was which.
//
// Thread safety: none. The folder is made, 0700, with the first file.
#pragma once

#include <string>

#include "service/replay/saved_copy.h"

namespace cairn::durable {

inline constexpr const char* kRescueList = "list.tsv";

class RescueFolder {
 public:
  explicit RescueFolder(std::string path) : path_(std::move(path)) {}

  // Saves the file as INODE-LSN-NAME and adds a line to the list: that name, the size, how many of
  // its bytes the log had, the path with control characters and backslashes written as \ooo.
  SavedCopy save(ExtentCopy& extents, const PendingFile& file);

 private:
  int make();
  int note(const std::string& name, const PendingFile& file, std::uint64_t bytes) const;

  std::string path_;
  bool is_made_ = false;
};

}  // namespace cairn::durable
