// SPDX-License-Identifier: Apache-2.0
// One text in kept memory: the state of the service that changes rarely and that its successor
// needs (runs, rules, accounts). A death while it is replaced leaves the text before.
//
// Thread safety: one writer at a time; read by a successor alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "service/keeping/kept_memory.h"

namespace cairn::node {

class KeptText {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{32} << 20;

  explicit KeptText(KeptMemory& memory)
      : halves_(memory.take<Half>(2)), current_(memory.take<std::atomic<std::uint32_t>>(1)) {}

  // False when the text is too long; then the one before stays.
  bool put(std::string_view text);
  // The last text; empty when there has been none.
  std::string get() const;

 private:
  struct Half {
    std::uint64_t length;
    char bytes[kBytesMax];
  };
  std::span<Half> halves_;
  std::span<std::atomic<std::uint32_t>> current_;  // counts the texts: its last bit names the half
};

}  // namespace cairn::node
