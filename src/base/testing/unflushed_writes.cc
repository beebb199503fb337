// SPDX-License-Identifier: Apache-2.0
#include "base/testing/unflushed_writes.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace cairn::testing {
namespace {

constexpr std::size_t kSectorBytes = 512;

void put(std::vector<std::byte>& to, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (to.size() < offset + bytes.size()) to.resize(offset + bytes.size());
  if (!bytes.empty()) std::memcpy(to.data() + offset, bytes.data(), bytes.size());
}

}  // namespace

std::vector<std::byte> survivors(std::vector<std::byte> durable, std::vector<UnflushedWrite> writes,
                                 RandomSource& random) {
  if (random.below(4) == 0 && !writes.empty()) {
    for (std::size_t at = writes.size() - 1; at > 0; --at) {
      std::swap(writes[at], writes[random.below(static_cast<std::uint32_t>(at + 1))]);
    }
  }
  const std::uint32_t kept_of_ten = random.below(11);
  for (const UnflushedWrite& write : writes) {
    for (std::size_t from = 0; from < write.bytes.size();) {
      const std::size_t in_sector = kSectorBytes - (write.offset + from) % kSectorBytes;
      std::size_t bytes = std::min(in_sector, write.bytes.size() - from);
      const std::size_t whole = bytes;
      if (random.below(10) >= kept_of_ten) bytes = 0;
      if (random.below(20) == 0) bytes = random.below(static_cast<std::uint32_t>(bytes + 1));
      put(durable, write.offset + from, std::span(write.bytes).subspan(from, bytes));
      from += whole;
    }
  }
  return durable;
}

}  // namespace cairn::testing
