// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/packed_watch.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::node {

using arrays::Box;

PackedWatch::PackedWatch(const arrays::PackedArray& array)
    : array_(array),
      grid_(array.grid().value()),
      watch_(arrays::FileArray{array.shape, array.cell_bytes, 0}) {}

std::uint64_t PackedWatch::bytes_of(std::uint64_t chunk) const {
  return *grid_.chunk(chunk).cells() * array_.cell_bytes;
}

// A box that is smaller than a chunk stands for it: a program that reads row after row goes from
// chunk to chunk.
Box PackedWatch::snapped(const Box& box) const {
  Box whole = box;
  const arrays::Coordinates& chunk = grid_.shape().chunk;
  for (std::size_t at = 0; at < box.dimensions(); ++at) {
    if (box.count[at] >= chunk[at]) continue;
    const std::uint64_t end = (box.end(at) - 1) / chunk[at] * chunk[at] + chunk[at];
    whole.first[at] = box.first[at] / chunk[at] * chunk[at];
    whole.count[at] = std::min(end, grid_.array()[at]) - whole.first[at];
  }
  return whole;
}

void PackedWatch::observe(std::uint64_t reader, const Box& box) {
  CAIRN_DCHECK(arrays::whole(grid_.array()).contains(box));
  grid_.for_each(grid_.chunks_of(box), [this](std::uint64_t chunk) {
    wanted_.erase(chunk);
    at_work_.erase(chunk);
    if (unread_.erase(chunk) != 0) unread_bytes_ -= bytes_of(chunk);
  });
  for (const Box& next : watch_.observe(reader, snapped(box))) {
    grid_.for_each(grid_.chunks_of(next), [this](std::uint64_t chunk) {
      if (wanted_.size() < kWantedMax) wanted_.insert(chunk);
    });
  }
}

std::vector<std::uint64_t> PackedWatch::take(std::size_t most) {
  CAIRN_DCHECK(most != 0);
  std::vector<std::uint64_t> taken;
  auto at = wanted_.lower_bound(next_);
  while (taken.size() < most && !wanted_.empty()) {
    if (at == wanted_.end()) at = wanted_.begin();
    // No batch goes back in the file.
    if (!taken.empty() && *at < taken.back()) break;
    taken.push_back(*at);
    at = wanted_.erase(at);
  }
  if (!taken.empty()) next_ = taken.back() + 1;
  at_work_.insert(taken.begin(), taken.end());
  return taken;
}

void PackedWatch::note_unpacked(std::uint64_t chunk, Time now) {
  CAIRN_DCHECK(chunk < grid_.chunks());
  if (at_work_.erase(chunk) == 0) return;
  ++unpacked_;
  if (unread_.insert_or_assign(chunk, now).second) unread_bytes_ += bytes_of(chunk);
  unpacked_at_.emplace_back(now, chunk);
}

void PackedWatch::forget_unread(Time before) {
  for (; !unpacked_at_.empty() && unpacked_at_.front().first < before; unpacked_at_.pop_front()) {
    const auto [time, chunk] = unpacked_at_.front();
    // It may have been read, and unpacked anew, since.
    const auto found = unread_.find(chunk);
    if (found == unread_.end() || found->second != time) continue;
    unread_.erase(found);
    unread_bytes_ -= bytes_of(chunk);
  }
}

}  // namespace cairn::node
