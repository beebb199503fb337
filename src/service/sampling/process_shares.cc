// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/process_shares.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace cairn::node {
namespace {

std::uint64_t sum_of(const CounterSums& sums, Counter counter) {
  return sums[static_cast<unsigned>(counter)];
}

void add_share(const ProcessShare& share, std::map<pid_t, ProcessShare>* shares) {
  CAIRN_DCHECK(shares != nullptr);
  const bool has_room =
      shares->contains(share.pid) || shares->size() < ProcessShares::kProcessesMax;
  ProcessShare& sum = (*shares)[has_room ? share.pid : 0];
  if (has_room) sum.pid = share.pid;
  // A process that has replaced itself is called what it became.
  sum.command = has_room ? share.command : "others";
  sum.add(share);
}

}  // namespace

ProcessShare ProcessShare::of(const ClientInfo& client, const CounterSums& sums) {
  return {client.pid,
          client.command,
          sum_of(sums, Counter::kIoCycles),
          sum_of(sums, Counter::kReadBytes),
          sum_of(sums, Counter::kMissBytes),
          sum_of(sums, Counter::kWriteBytes)};
}

void ProcessShare::add(const ProcessShare& other) {
  io_ns += other.io_ns;
  read_bytes += other.read_bytes;
  miss_bytes += other.miss_bytes;
  write_bytes += other.write_bytes;
}

void ProcessShares::begin(std::uint32_t run) {
  const std::lock_guard lock(mutex_);
  if (runs_.try_emplace(run).second) ++listening_;
}

void ProcessShares::end(std::uint32_t run) {
  const std::lock_guard lock(mutex_);
  if (runs_.erase(run) != 0) --listening_;
  CAIRN_CHECK(listening_.load() == runs_.size());
}

void ProcessShares::note_departed(const ClientInfo& client, const CounterSums& sums) {
  if (listening_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(client.run);
  if (found != runs_.end()) add_share(ProcessShare::of(client, sums), &found->second);
}

std::vector<ProcessShare> ProcessShares::of(std::uint32_t run,
                                            const std::vector<ClientCounts>& active) const {
  std::map<pid_t, ProcessShare> shares;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = runs_.find(run); found != runs_.end()) shares = found->second;
  }
  for (const ClientCounts& each : active)
    add_share(ProcessShare::of(each.client, each.sums), &shares);
  std::vector<ProcessShare> list;
  for (auto& [pid, share] : shares) list.push_back(std::move(share));
  std::sort(list.begin(), list.end(), [](const ProcessShare& a, const ProcessShare& b) {
    return std::tuple(a.io_ns, a.pid) > std::tuple(b.io_ns, b.pid);
  });
  CAIRN_CHECK(list.size() <= kProcessesMax + 1);
  return list;
}

}  // namespace cairn::node
