// SPDX-License-Identifier: Apache-2.0
// Which address ranges of the process are mappings of buffered files. While there is one, the file
// is in through mode (rule 6 of the design): the kernel's pages are the truth, and reads and writes
// of everybody go there.
//
// Thread safety: any thread. No allocation: mmap() is called by allocators.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frontends/common/open_file.h"

namespace cairn {

class Mappings {
 public:
  static bool any();
  // Before the kernel maps the file: 0 or -errno. Every success needs one add() or cancel().
  static int prepare(OpenFile& file, HoldIndex* hold);
  static void cancel(OpenFile& file, HoldIndex hold);
  static void add(std::uintptr_t begin, std::size_t length, ObjectIndex object, HoldIndex hold);
  // The kernel removed [begin, begin + length) or put something else there.
  static void remove(std::uintptr_t begin, std::size_t length);
  // The kernel moved or resized a mapping.
  static void move(std::uintptr_t from, std::size_t from_length, std::uintptr_t to,
                   std::size_t to_length);
  // In a forked child that has attached: its copies of the mappings count too.
  static void count_again();
};

}  // namespace cairn
