// SPDX-License-Identifier: Apache-2.0
// The first page of a pool file: as it is, and with the sum of a whole one, so that its words are
// reached. Nothing is accepted that names another node, tier or number of buckets.
#include <cstring>

#include "base/check.h"
#include "base/fnv1a.h"
#include "fuzz/fuzz_input.h"
#include "memory/tiers/pool_format.h"

namespace {

constexpr cairn::PoolIdentity kOurs{{0x1234, 0x5678}, 2, 4};

void check(const cairn::PoolPage& page) {
  const bool is_ours = cairn::check_superblock(page, kOurs).is_ok();
  cairn::PoolSuperblock found;
  std::memcpy(&found, page.bytes.data(), sizeof found);
  const cairn::PoolIdentity named{found.node, found.tier, found.bucket_count};
  CAIRN_CHECK(!is_ours || named == kOurs);
  (void)cairn::check_superblock(page, named);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cairn::fuzz::FuzzInput input(data, size);
  const std::string_view bytes = input.take_bytes(cairn::kPageBytes);
  cairn::PoolPage page;
  std::memcpy(page.bytes.data(), bytes.data(), bytes.size());
  check(page);
  // The words of ours, where the input has not others.
  cairn::PoolPage summed = cairn::make_superblock(kOurs);
  for (std::size_t at = 0; at < bytes.size(); ++at)
    summed.bytes[at] ^= static_cast<std::byte>(bytes[at]);
  constexpr std::size_t kSumAt = offsetof(cairn::PoolSuperblock, sum);
  std::memset(summed.bytes.data() + kSumAt, 0, sizeof(std::uint64_t));
  const std::uint64_t sum =
      cairn::fnv1a({reinterpret_cast<const char*>(summed.bytes.data()), summed.bytes.size()});
  std::memcpy(summed.bytes.data() + kSumAt, &sum, sizeof sum);
  check(summed);
  return 0;
}
