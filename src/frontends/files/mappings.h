// SPDX-License-Identifier: Apache-2.0
// Which address ranges of the process are mappings of buffered files. While there is one, the file
// is in through mode (rule 6 of the design): the kernel's pages are the truth, and reads and writes
// of everybody go there.
//
// All changes of mappings call the kernel from in here, in one step with the list: the kernel may
// give an address to another thread as soon as it has been unmapped, and a fork copies both. A call
// that concerns no mapping of the list goes to the kernel without a lock: a range of the caller's
// own cannot get into the list meanwhile.
//
// Thread safety: any thread. No allocation: mmap() is called by allocators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frontends/descriptors/open_file.h"

namespace cairn {

class Mappings {
 public:
  static bool any();

  // The system calls of the same names; what they return tells sys::is_error() from an address.
  struct Request {
    void* address;
    std::size_t length;
    int protection;
    int flags;
    int fd;
    off_t offset;
  };
  static void* map(const Request& request);
  // The file's own descriptor takes the place of the request's.
  static void* map_file(OpenFile& file, Request request);
  static int unmap(void* address, std::size_t length);
  struct Move {
    void* address;
    std::size_t length;
    std::size_t new_length;
    int flags;
    void* wanted;
  };
  static void* remap(const Move& move);

  // In a forked child that has attached: its copies of the mappings count too.
  static void count_again();
};

}  // namespace cairn
