// SPDX-License-Identifier: Apache-2.0
// Which files programs have opened past the buffers, by a name that no managed directory has.
//
// Such a file may get a managed name while it is open (a rotated log, a renamed directory, a link),
// or have one already (a link, a bind mount). The kernel serves the open from before, so a later
// open must not buffer the file. Opens that nobody buffers leave a trace here and no record: two
// bits of a table by the file's key. Closes leave none. So a file that is not in the table was
// never opened so; one that is in it may still be open, and the maker of its object asks the kernel
// (memory/backing/other_openers.h). About one file in a thousand is in it by accident once
// it has 20,000 files; that costs a file a few system calls at its first open.
//
// An open in each of two processes: one notes the file here and then looks for its object, the
// other makes the object visible and then looks here. So one of them sees the other.
//
// Thread safety: any thread of any process. Ownership: lives in the control segment, which begins
// as zeros.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/fence.h"
#include "base/object_key.h"
#include "memory/catalog/hash_lines.h"

namespace cairn {

class UnmanagedOpens {
 public:
  void note(const ObjectKey& key) {
    const std::uint64_t hash = hash_of(key);
    for (const std::uint32_t bit : {first_of(hash), second_of(hash)}) {
      std::atomic<std::uint64_t>& word = words_[bit / 64];
      // A library or a script that every process opens stays in everybody's caches.
      if ((word.load(std::memory_order_relaxed) & mask_of(bit)) == 0)
        word.fetch_or(mask_of(bit), std::memory_order_seq_cst);
    }
    order_with_the_other_look();
  }
  // Requires: the object of the file is visible to others already.
  bool may_have(const ObjectKey& key) const {
    order_with_the_other_look();
    const std::uint64_t hash = hash_of(key);
    return has(first_of(hash)) && has(second_of(hash));
  }

 private:
  static constexpr unsigned kBitsLog2 = 20;  // 128 KiB
  static constexpr std::uint32_t kBits = std::uint32_t{1} << kBitsLog2;

  // Between what a process has written here or in the table of objects and its look at the other.
  static void order_with_the_other_look() { fence(std::memory_order_seq_cst); }
  static std::uint64_t hash_of(const ObjectKey& key) {
    return mix_bits(key.id.inode * 0x9e3779b97f4a7c15ULL +
                    mix_bits(raw(key.store) ^ static_cast<std::uint64_t>(key.id.birth_ns)));
  }
  static std::uint32_t first_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash) % kBits;
  }
  static std::uint32_t second_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32) % kBits;
  }
  static std::uint64_t mask_of(std::uint32_t bit) { return std::uint64_t{1} << bit % 64; }
  bool has(std::uint32_t bit) const {
    return (words_[bit / 64].load(std::memory_order_relaxed) & mask_of(bit)) != 0;
  }

  std::array<std::atomic<std::uint64_t>, kBits / 64> words_;
};

}  // namespace cairn
