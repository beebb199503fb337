// SPDX-License-Identifier: Apache-2.0
//
// The file that a device is measured with: without a name from its first instant on (O_TMPFILE) or
// from its second (removed at once, signals held off), so that no way of dying leaves it behind.
//
// Direct where the file system can do direct I/O; else each write is synchronous (O_DSYNC) and the
// caller drops what the page cache holds before it reads.
//
// Thread safety: none. Ownership: owns the descriptor; the space is free again when it is closed.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace cairn::profiler {

class TestFile {
 public:
  // Preallocates `bytes`. Errors: those of the file system, with the directory's name; kExhausted
  // where there is not enough room.
  static Result<TestFile> create(const std::string& directory, uint64_t bytes);

  TestFile(TestFile&& other) noexcept;
  TestFile& operator=(TestFile&& other) noexcept;
  ~TestFile();

  int descriptor() const { return descriptor_; }
  bool is_direct() const { return direct_; }

  // For file systems that refuse direct requests only when they come.
  Status give_up_direct();

  // Everything written is on the device. Returns: how long that took, in seconds.
  Result<double> flush();

  // Reads come from the device again; nothing to do for a direct file.
  void drop_cache();

 private:
  TestFile() = default;
  Status open_unnamed(const std::string& directory);
  Status open_and_remove(const std::string& directory);

  int descriptor_ = -1;
  bool direct_ = false;
};

}  // namespace cairn::profiler
