// SPDX-License-Identifier: Apache-2.0
// What the service says of itself to all clients.
//
//   word      written by                 read by
//   detached  service, when it leaves    clients: they write through from then on
//   keeper    service                    clients: while this process lives, a service that dies is
//                                        followed by another one; 0: it is not
//   has_log   service                    clients: there is a durable log, which knows of names too
//   named_directories  service           clients: so many directories have names that the log alone
//                                        has for certain
//   openings  clients, in open()         threads that must be alone with an unlinked file
//   offers    service                    processes that start: slots to take; 0: none
//   log_folder, log_id  service, before has_log  clients that survive it and its keeper: where they
//                                        leave word of what they have stored by themselves
//                                        (memory/flush/orphan_words.h)
//   log_last  service, before it writes  the same: the number of the log's last record
//
// `openings` is the sum of the slots' own counts (frontends/client/opening_guard.h); the service
// takes out what a dead client has left in it.
//
// Thread safety: atomics. Ownership: lives in the control segment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cairn {

struct alignas(64) ServiceBoard {
  // Values of `detached`. An orphaned node may have left data that is in its memory alone.
  static constexpr std::uint32_t kAttached = 0;
  static constexpr std::uint32_t kEndedInOrder = 1;
  static constexpr std::uint32_t kOrphaned = 2;
  std::atomic<std::uint32_t> detached;
  std::atomic<std::int32_t> keeper;
  std::atomic<std::uint32_t> has_log;
  std::atomic<std::uint32_t> named_directories;
  // Every open() of a managed path writes it: a line of its own.
  alignas(64) std::atomic<std::uint32_t> openings;
  static constexpr unsigned kOffersMax = 8;
  alignas(64) std::atomic<std::uint32_t> offers[kOffersMax];
  // A path that ends with a zero byte; empty: there is no log, or its path is longer.
  static constexpr unsigned kFolderMax = 4096;
  alignas(64) char log_folder[kFolderMax];
  std::atomic<std::uint64_t> log_id;
  alignas(64) std::atomic<std::uint64_t> log_last;
};
static_assert(offsetof(ServiceBoard, log_folder) == 3 * 64,
              "lines that are read and written often");

}  // namespace cairn
