// SPDX-License-Identifier: Apache-2.0
// What each process of a sampled run has read and written: of those that have gone, what they had
// counted in the end.
//
// Thread safety: any thread; calls nobody while it holds its lock, as processes are noted under
// the lock of the table of clients. Units: bytes, nanoseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "service/attachment/client_table.h"

namespace cairn::node {

struct ProcessShare {
  pid_t pid = 0;
  std::string command;
  std::uint64_t io_ns = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t miss_bytes = 0;
  std::uint64_t write_bytes = 0;

  static ProcessShare of(const ClientInfo& client, const CounterSums& sums);
  void add(const ProcessShare& other);
};

class ProcessShares {
 public:
  // One by one; those that come later are one entry together, with the process id 0.
  static constexpr std::size_t kProcessesMax = 1024;

  void begin(std::uint32_t run);
  void end(std::uint32_t run);
  void note_departed(const ClientInfo& client, const CounterSums& sums);
  // With `active`, those of the run that are still there; the longest in I/O first.
  std::vector<ProcessShare> of(std::uint32_t run, const std::vector<ClientCounts>& active) const;

 private:
  std::atomic<unsigned> listening_{0};  // to runs
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::map<pid_t, ProcessShare>> runs_;
};

}  // namespace cairn::node
