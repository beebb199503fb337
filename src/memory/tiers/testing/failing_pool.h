// SPDX-License-Identifier: Apache-2.0
// The pool file of a node's tier made to fail, by what becomes of the file and of its descriptor:
// no code of the tier knows of it.
//
// Thread safety: none, and nobody is at work on the tier meanwhile. Ownership: its own copies of
// the descriptor.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "memory/tiers/node_memory.h"
#include "memory/tiers/pool_format.h"

namespace cairn::testing {

class FailingPool {
 public:
  FailingPool(const NodeMemory& memory, TierId tier)
      : fd_(memory.tier(tier).on_device({}).descriptor), whole_(::dup(fd_)) {
    EXPECT_GE(whole_, 0);
  }
  ~FailingPool() {
    heal();
    ::close(whole_);
  }
  FailingPool(const FailingPool&) = delete;
  FailingPool& operator=(const FailingPool&) = delete;

  // The tier loses its bytes from `offset` on: reads of them fail with EIO until they are written
  // anew.
  void lose_from(std::uint64_t offset) const {
    EXPECT_EQ(::ftruncate(whole_, static_cast<off_t>(kPoolDataOffset + offset)), 0);
  }
  // Writes fail with EBADF, which is this process's own error and does not count.
  void refuse_writes() const { open_as("/proc/self/fd/" + std::to_string(whole_), O_RDONLY); }
  // Writes fail with ENOSPC; reads give zeros.
  void have_no_room() const { open_as("/dev/full", O_RDWR); }
  void heal() const { EXPECT_EQ(::dup2(whole_, fd_), fd_); }

 private:
  void open_as(const std::string& path, int flags) const {
    const int other = ::open(path.c_str(), flags | O_CLOEXEC);
    ASSERT_GE(other, 0);
    EXPECT_EQ(::dup2(other, fd_), fd_);
    ::close(other);
  }

  const int fd_;
  const int whole_;
};

}  // namespace cairn::testing
