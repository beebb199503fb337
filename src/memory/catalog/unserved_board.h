// SPDX-License-Identifier: Apache-2.0
// What happens on the node past the service, and what its clients have to heed for it.
//
//   word               written by                        read by
//   foreign_programs   service                           close(): it stores at once
//   path_descriptors   a client, for good                the last close of an unlinked file
//   keys               service (write_back/unserved_     the maker of a new object: it asks the
//                      files.h)                          service whether the object is one of them
//   unmanaged          clients                           the maker of a new object: it asks the
//                                                        kernel for other openers
//
// Thread safety: atomics. Ownership: lives in the control segment.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/catalog/unmanaged_opens.h"

namespace cairn {

struct alignas(64) UnservedBoard {
  // Programs that cannot be intercepted and run in the node's process trees.
  std::atomic<std::uint32_t> foreign_programs;
  // Not 0: a program has opened regular files with O_PATH, so that an unlinked file may be looked
  // at after its last description is gone.
  std::atomic<std::uint32_t> path_descriptors;
  // Files that unserved processes use and that the table of objects had no room for.
  std::atomic<std::uint32_t> keys;
  alignas(64) UnmanagedOpens unmanaged;
};
static_assert(sizeof(UnservedBoard) == 64 + sizeof(UnmanagedOpens),
              "the words share one line, seldom written");

}  // namespace cairn
