// SPDX-License-Identifier: Apache-2.0
// Descriptors for reading of files that programs have open: what the service fetches from. They are
// the service's own opens of the very inode that the program's descriptor names (through /proc), so
// that names, renames and working directories do not matter.
//
// Thread safety: all functions from any thread. Ownership: a descriptor closes with the last
// SourceFilePtr to it; forget() drops the table's own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "memory/backing/posix_backing.h"
#include "memory/tiers/node_memory.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

struct SourceFile {
  explicit SourceFile(UniqueFd descriptor);
  ~SourceFile() { file.close_extra(); }
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  UniqueFd fd;
  PosixBacking file;
};
using SourceFilePtr = std::shared_ptr<SourceFile>;

// The file of `object`, which the process `pid` has open as `descriptor`. Null when it is not that
// file any more, or may not be read.
SourceFilePtr open_source(const NodeMemory& memory, ObjectIndex object, pid_t pid, int descriptor);

class SourceFiles {
 public:
  static constexpr std::size_t kFilesMax = 256;

  explicit SourceFiles(const NodeMemory& memory);

  // As open_source(), and for the next one who asks.
  SourceFilePtr open(ObjectIndex object, pid_t pid, int descriptor);
  void forget(ObjectIndex object);

 private:
  const NodeMemory& memory_;
  const std::size_t files_max_;
  std::mutex mutex_;
  std::unordered_map<std::uint32_t, SourceFilePtr> files_;
};

}  // namespace cairn::node
