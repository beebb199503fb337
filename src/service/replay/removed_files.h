// SPDX-License-Identifier: Apache-2.0
// What recovery does about files that were removed, and that a crash may have brought back.
//
// A file is superseded if another one was stated under its path after its removal (LogIndex): an
// fsync of that one tells of all that had happened to the name before. It goes only when the other
// one has its place, or is gone for good itself; so the name is never without either.
//
// Thread safety: none. Ownership: borrows the files.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>

#include "service/replay/log_index.h"

namespace cairn::durable {

class RemovedFiles {
 public:
  using Step = std::function<void(const char*)>;
  // Borrows the files, which stay where they are.
  RemovedFiles(std::span<const PendingFile> files, Step step);

  // Whether what has the path of `by` on the store is a file that `by` has superseded.
  bool has_place_of(const PendingFile& by) const;
  // `by` lies whole at `from`, and gets its own path if a superseded file has that. Returns 0 or
  // errno.
  int take_place(const PendingFile& by, const std::string& from) const;
  // `file` is nowhere, and was to be: so are those that it has superseded, and the store does not
  // bring any of them back. Returns 0 or errno.
  int forget(const PendingFile& file);

 private:
  int sync_around(const PendingFile& file);

  // By the file that has superseded them.
  std::multimap<LogObject, const PendingFile*> superseded_;
  Step step_;
  std::set<std::uint64_t> synced_;  // devices
};

}  // namespace cairn::durable
