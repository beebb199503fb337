// SPDX-License-Identifier: Apache-2.0
#include "service/recovery/recount.h"

#include <array>
#include <unordered_map>

#include "base/check.h"
#include "memory/catalog/hash_lines.h"

namespace cairn::node {
namespace {

// What a look at all blocks finds of an object.
struct Tally {
  std::uint32_t blocks = 0;
  std::uint32_t dirty = 0;
  std::uint64_t words = 0;  // a sum over the descriptors: equal means unchanged
  bool is_busy = false;
  friend bool operator==(const Tally&, const Tally&) = default;
};

struct WaitingBytes {
  std::uint64_t all = 0;
  std::uint64_t below = 0;
  friend bool operator==(const WaitingBytes&, const WaitingBytes&) = default;
};

struct Census {
  std::unordered_map<std::uint32_t, Tally> objects;
  std::array<WaitingBytes, FetchJournal::kPredictorsMax> waiting;
  std::uint64_t dirty_bytes = 0;
  bool is_busy = false;

  explicit Census(const NodeMemory& memory) {
    for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
      memory.pool(static_cast<TierId>(tier)).for_each_bucket([&](BucketIndex bucket) {
        count(memory, bucket);
      });
    }
  }
  // Nobody has been at work on any block since. A program that makes one block more dirty behind
  // each look gives the same surplus twice, which is none.
  bool is_still(const Census& later) const {
    return !is_busy && !later.is_busy && objects == later.objects;
  }
  Tally of(std::uint32_t object) const {
    const auto found = objects.find(object);
    return found == objects.end() ? Tally() : found->second;
  }

 private:
  void count(const NodeMemory& memory, BucketIndex bucket) {
    const BlockDescriptor& block = memory.block(bucket);
    const std::uint64_t word = block.word(std::memory_order_acquire);
    const std::uint64_t identity = block.identity();
    const bool is_locked = BlockDescriptor::is_locked(word);
    is_busy = is_busy || is_locked;
    if (identity == 0) return;
    Tally& tally = objects[raw(BlockDescriptor::object_in(identity))];
    const bool is_dirty = counts_as_dirty(block.state());
    ++tally.blocks;
    tally.dirty += is_dirty ? 1 : 0;
    tally.words += mix_bits(mix_bits(word) + identity + raw(bucket));
    tally.is_busy = tally.is_busy || is_locked;
    const std::size_t bytes = memory.bucket_bytes(bucket);
    if (is_dirty) dirty_bytes += bytes;
    if (!block.is_unread()) return;
    WaitingBytes& unread = waiting[block.fetched_by() % waiting.size()];
    unread.all += bytes;
    if (!memory.in_memory(bucket)) unread.below += bytes;
  }
};

struct Counted {
  std::uint32_t blocks = 0;
  std::uint32_t dirty = 0;
};
using CountsOfObjects = std::unordered_map<std::uint32_t, Counted>;

// The counts of objects that are higher than what was found.
CountsOfObjects too_high(const NodeMemory& memory, const Census& census) {
  CountsOfObjects high;
  const std::uint32_t used = memory.objects().used();
  for (std::uint32_t number = 1; number < used; ++number) {
    const Object& object = memory.objects().at(static_cast<ObjectIndex>(number));
    if (!object.has(kObjectLive)) continue;
    const Counted counted{object.blocks.load(), object.dirty_blocks.load()};
    const Tally tally = census.of(number);
    if (counted.blocks > tally.blocks || counted.dirty > tally.dirty) high[number] = counted;
  }
  return high;
}

bool lower(std::atomic<std::uint32_t>& count, std::uint32_t seen, std::uint32_t found) {
  return seen > found && count.compare_exchange_strong(seen, found);
}

std::uint32_t correct_objects(const NodeMemory& memory, const CountsOfObjects& high,
                              const Census& before, const Census& after) {
  std::uint32_t corrected = 0;
  for (const auto& [number, counted] : high) {
    const Tally tally = before.of(number);
    CAIRN_CHECK(tally.dirty <= tally.blocks);
    if (tally.is_busy || tally != after.of(number)) continue;
    Object& object = memory.objects().at(static_cast<ObjectIndex>(number));
    if (lower(object.blocks, counted.blocks, tally.blocks)) ++corrected;
    if (lower(object.dirty_blocks, counted.dirty, tally.dirty)) ++corrected;
  }
  return corrected;
}

// How much more of a predictor's bytes wait by the journal than are there; 0 when it is less.
WaitingBytes surplus(const FetchJournal::Line& line, const WaitingBytes& found) {
  const std::uint64_t gone = line.used_bytes.load() + line.evicted_unused_bytes.load() + found.all;
  const std::uint64_t fetched = line.fetched_bytes.load();
  const std::uint64_t below = line.below_bytes.load();
  WaitingBytes more;
  if (fetched > gone) more.all = fetched - gone;
  if (static_cast<std::int64_t>(below) > static_cast<std::int64_t>(found.below))
    more.below = below - found.below;
  return more;
}

// The counts of the whole node, which are believed when nobody is at work on any block.
struct NodeSurplus {
  std::array<WaitingBytes, FetchJournal::kPredictorsMax> waiting;
  std::uint64_t dirty_bytes = 0;

  NodeSurplus(const NodeMemory& memory, const Census& census) {
    const std::uint64_t counted = memory.flusher_board().dirty_bytes.load();
    dirty_bytes = counted > census.dirty_bytes ? counted - census.dirty_bytes : 0;
    for (unsigned predictor = 0; predictor < waiting.size(); ++predictor)
      waiting[predictor] = surplus(memory.fetches().of(predictor), census.waiting[predictor]);
  }
  bool is_any() const {
    bool is_any = dirty_bytes != 0;
    for (const WaitingBytes& more : waiting) is_any = is_any || more.all != 0 || more.below != 0;
    return is_any;
  }
};

std::uint32_t correct_node(const NodeMemory& memory, const NodeSurplus& before,
                           const NodeSurplus& after) {
  std::uint32_t corrected = 0;
  if (before.dirty_bytes == after.dirty_bytes && after.dirty_bytes != 0) {
    memory.flusher_board().dirty_bytes.fetch_sub(after.dirty_bytes);
    ++corrected;
  }
  for (unsigned predictor = 0; predictor < after.waiting.size(); ++predictor) {
    const WaitingBytes& more = after.waiting[predictor];
    if (more != before.waiting[predictor]) continue;
    if (more.all != 0) memory.fetches().note_evicted_unused(predictor, more.all);
    if (more.below != 0) memory.fetches().note_left_below(predictor, more.below);
    corrected += (more.all != 0 ? 1 : 0) + (more.below != 0 ? 1 : 0);
  }
  return corrected;
}

}  // namespace

std::uint32_t correct_counts_of_blocks(const NodeMemory& memory) {
  constexpr int kRounds = 3;
  std::uint32_t corrected = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Census before(memory);
    const NodeSurplus node_before(memory, before);
    const CountsOfObjects high = too_high(memory, before);
    if (high.empty() && !node_before.is_any()) break;
    const Census after(memory);
    corrected += correct_objects(memory, high, before, after);
    const NodeSurplus node_after(memory, after);
    if (before.is_still(after)) corrected += correct_node(memory, node_before, node_after);
  }
  return corrected;
}

}  // namespace cairn::node
