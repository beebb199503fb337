// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/testing/faulty_tier.h"

#include <errno.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace cairn::testing {
namespace {

// Tiers take and give whole pages of aligned memory.
struct Pages {
  explicit Pages(std::size_t length)
      : bytes(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, length))) {}
  ~Pages() { std::free(bytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* bytes;
};

}  // namespace

int FaultyTier::do_read(TierExtent extent, std::span<const iovec> parts) const {
  const FaultScript::Fate fate = script_.next(kind_of(TierCall::kRead));
  return fate.error != 0 ? fate.error : other_.read_parts(extent, parts);
}

int FaultyTier::do_write(TierExtent extent, std::span<const iovec> parts) const {
  const FaultScript::Fate fate = script_.next(kind_of(TierCall::kWrite));
  std::vector<std::byte> bytes;
  for (const iovec& part : parts) {
    const auto* from = static_cast<const std::byte*>(part.iov_base);
    bytes.insert(bytes.end(), from, from + part.iov_len);
  }
  if (bytes.size() > fate.bytes_max) bytes.resize(fate.bytes_max);
  const int error = bytes.empty() ? 0 : put(extent, bytes);
  return fate.error != 0 ? fate.error : error;
}

// The first bytes of the extent; the others stay what they were.
int FaultyTier::put(TierExtent extent, std::span<const std::byte> bytes) const {
  const std::lock_guard lock(mutex_);
  const Pages pages(extent.length);
  if (const int error = other_.read_pages(extent, pages.bytes); error != 0) return error;
  std::memcpy(pages.bytes, bytes.data(), bytes.size());
  if (const int error = other_.write_pages(extent, pages.bytes); error != 0) return error;
  if (forgetting_) forgetting_->writes.push_back({extent.offset, {bytes.begin(), bytes.end()}});
  return 0;
}

void FaultyTier::begin_forgetting() {
  const std::lock_guard lock(mutex_);
  forgetting_.emplace(Forgetting{content(), {}});
}

void FaultyTier::flush() {
  const std::lock_guard lock(mutex_);
  if (forgetting_) forgetting_.emplace(Forgetting{content(), {}});
}

void FaultyTier::cut_power(RandomSource& random) {
  const std::lock_guard lock(mutex_);
  const std::vector<std::byte> left =
      survivors(std::move(forgetting_->durable), std::move(forgetting_->writes), random);
  const Pages pages(left.size());
  std::memcpy(pages.bytes, left.data(), left.size());
  CAIRN_CHECK(other_.write_pages(TierExtent{0, left.size()}, pages.bytes) == 0);
  forgetting_.reset();
}

std::vector<std::byte> FaultyTier::content() const {
  const auto length = static_cast<std::size_t>(other_.capacity_bytes());
  const Pages pages(length);
  CAIRN_CHECK(other_.read_pages(TierExtent{0, length}, pages.bytes) == 0);
  return {pages.bytes, pages.bytes + length};
}

}  // namespace cairn::testing
