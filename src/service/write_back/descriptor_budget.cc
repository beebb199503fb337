// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/descriptor_budget.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/check.h"

namespace cairn::node {
namespace {

constexpr std::uint64_t kSparedMin = 24;
constexpr std::uint64_t kSparedMax = 1024;
// One of so many is spared.
constexpr std::uint64_t kSparedPart = 4;
constexpr std::uint64_t kRoomMax = 1u << 30;
static_assert(kSparedMin <= kSparedMax);
static_assert(kRoomMax <= INT32_MAX, "the room is counted in 32 bits with a sign");

std::uint64_t limit() {
  rlimit now{};
  return ::getrlimit(RLIMIT_NOFILE, &now) == 0 ? std::min<std::uint64_t>(now.rlim_cur, kRoomMax)
                                               : 0;
}

std::uint64_t spared_of(std::uint64_t limit) {
  return std::clamp(limit / kSparedPart, kSparedMin, kSparedMax);
}

// Without /proc nothing is known: then there is no room.
std::uint64_t count_open() {
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return kRoomMax;
  std::uint64_t count = 0;
  while (const dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] != '.') ++count;
  }
  ::closedir(directory);
  return count - 1;
}

}  // namespace

std::uint32_t spared_descriptors() { return static_cast<std::uint32_t>(spared_of(limit())); }

DescriptorBudget::DescriptorBudget(const NodeMemory& memory)
    : memory_(memory), ballast_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

std::int64_t DescriptorBudget::being_sent() const {
  std::int64_t sending = 0;
  for (std::uint32_t slot = 1; slot < memory_.slot_count(); ++slot)
    sending += memory_.slot(static_cast<std::uint16_t>(slot)).sending.load();
  return sending;
}

bool DescriptorBudget::has_ballast() {
  if (!ballast_) ballast_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return static_cast<bool>(ballast_);
}

void DescriptorBudget::measure() {
  const std::lock_guard lock(mutex_);
  ballast_.reset();
  const std::uint64_t most = limit();
  const auto left = static_cast<std::int64_t>(most) - static_cast<std::int64_t>(count_open()) -
                    static_cast<std::int64_t>(spared_of(most)) - being_sent() - to_come();
  has_ballast();
  total_ = static_cast<std::int32_t>(std::clamp<std::int64_t>(left, 0, kRoomMax));
  CAIRN_CHECK(total_ >= 0);
  room().left.store(total_, std::memory_order_release);
}

bool DescriptorBudget::take_client() { return take_client_and_leave(1); }

bool DescriptorBudget::take_client_of_many() {
  // Counted first: measure() must not promise the same numbers to somebody else meanwhile.
  to_come_.fetch_add(1);
  if (take_client_and_leave(3)) return true;
  to_come_.fetch_sub(1);
  return false;
}

void DescriptorBudget::give_back_client_to_come() {
  client_has_come();
  CAIRN_CHECK(to_come_.load() >= 0);
  room().give_back(kPerClient);
}

bool DescriptorBudget::take_client_and_leave(std::int32_t of_four) {
  constexpr std::int32_t kParts = 4;
  std::int32_t for_files = 0;
  {
    const std::lock_guard lock(mutex_);
    for_files = total_ / kParts * of_four;
  }
  return room().take(kPerClient, for_files);
}

FileRoom DescriptorBudget::received(std::uint16_t slot) const {
  // Written by the client as well: never below nothing.
  std::atomic<std::uint32_t>& sending = memory_.slot(slot).sending;
  std::uint32_t seen = sending.load(std::memory_order_relaxed);
  while (seen != 0 && !sending.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel)) {
  }
  return FileRoom(room());
}

void DescriptorBudget::give_back_client(std::uint16_t slot) const {
  // More than one per thread is nothing that a client would have done.
  constexpr std::uint32_t kMost = 4096;
  const std::uint32_t sending = memory_.slot(slot).sending.exchange(0);
  room().give_back(kPerClient + static_cast<std::int32_t>(std::min(sending, kMost)));
}

std::optional<FileRoom> DescriptorBudget::take_one() const {
  if (!room().take(1)) return std::nullopt;
  return FileRoom(room());
}

void DescriptorBudget::free_a_number() {
  const std::lock_guard lock(mutex_);
  ballast_.reset();
}

void DescriptorBudget::keep_a_number() {
  const std::lock_guard lock(mutex_);
  has_ballast();
}

// The kernel gives the lowest number that is free: all below it are taken.
bool DescriptorBudget::can_take_connection(bool is_awaited) {
  std::int64_t taken = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!has_ballast()) return false;
    const UniqueFd lowest(::fcntl(ballast_.get(), F_DUPFD_CLOEXEC, 0));
    if (!lowest) return false;
    taken = lowest.get();
  }
  const auto most = static_cast<std::int64_t>(limit());
  // The limit was lowered, which nobody told the room.
  if (taken + room().left.load(std::memory_order_relaxed) > most) measure();
  const std::int64_t promised = std::max(room().left.load(std::memory_order_relaxed), 0);
  const std::int64_t spare = most - taken - promised - kLeftByConnections;
  const std::int64_t kept = is_awaited ? 0 : to_come();
  // More than one for each client is rarely on its way: then there is no need to count.
  return spare > std::int64_t{memory_.slot_count()} + kept || spare > being_sent() + kept;
}

}  // namespace cairn::node
