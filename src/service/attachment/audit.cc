// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/audit.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/catalog/record_cursor.h"

namespace cairn::node {
namespace {

bool is_referred_to(const Object& object) {
  return object.opens.load() != 0 || object.writers.load() != 0 || object.through.load() != 0;
}

}  // namespace

template <typename Visit>
void Audit::for_each_object(Visit&& visit) const {
  const std::uint32_t used = memory_.objects().used();
  for (std::uint32_t index = 1; index < used; ++index) {
    if (memory_.objects().at(static_cast<ObjectIndex>(index)).has(kObjectLive)) {
      visit(static_cast<ObjectIndex>(index));
    }
  }
}

Audit::Outcome Audit::run(Actor& actor) {
  if (!correct_references(actor)) return Outcome::kLater;
  if (has_dirty_pages() || !is_quiet_() || !correct_blocks(actor)) return Outcome::kLater;
  return Outcome::kDone;
}

// Descriptions without a hold, and references to objects by nobody. Looked for first, corrected
// behind the gate.
bool Audit::correct_references(Actor& actor) {
  const std::uint64_t epoch = clients_.attach_count();
  std::vector<DescriptionIndex> descriptions;
  const std::uint32_t used = memory_.descriptions().used();
  for (std::uint32_t index = 1; index < used; ++index) {
    const auto description = static_cast<DescriptionIndex>(index);
    if (memory_.descriptions().at(description).object.load() != 0)
      descriptions.push_back(description);
  }
  std::vector<ObjectIndex> objects;
  for_each_object([&](ObjectIndex index) {
    if (is_referred_to(memory_.objects().at(index))) objects.push_back(index);
  });
  bool was_still = false;
  const bool was_nobody = clients_.if_nobody(epoch, [&] {
    const Stillness still = hold_still_();
    const Stillness ledger_still = unserved_.hold_still();
    if (!still || !ledger_still) return;
    was_still = true;
    // Processes without a slot are not attached, and may be alive.
    auto kept = unserved_.kept_objects();
    for (const DescriptionIndex description : descriptions) {
      memory_.descriptions().at(description).references.store(0);
      memory_.descriptions().destroy(description);
    }
    for (const ObjectIndex index : objects) {
      Object& object = memory_.objects().at(index);
      // The rest speaks of processes that have ended, however large the number is; files that are
      // kept for good have no process that could give them back.
      const std::uint32_t mine = object.through.load() & ~kThroughAbandoned;
      const std::uint32_t for_good = mine / kThroughForGood * kThroughForGood;
      const std::uint32_t through = for_good + kept[raw(index)];
      if (object.through.load() > through) {
        object.through.store(through + 1);
        leave_through(actor, index);
      }
      object.writers.store(0);
      if (object.opens.load() == 0) continue;
      object.opens.store(1);
      abandon_object(actor, index, false);
    }
  });
  return was_nobody && was_still;
}

bool Audit::has_dirty_pages() const {
  bool dirty = false;
  memory_.for_each_maybe_dirty(
      [&](BucketIndex bucket) { dirty = dirty || memory_.block(bucket).dirty_pages() != 0; });
  return dirty;
}

// With nothing dirty and nobody attached only the organizer and the prefetcher change anything. The
// prefetcher is kept still while counts are set, and the organizer only takes blocks away. Between
// taking one out of the directory and out of the count it is not at rest, and a count that moved
// while the blocks were counted is looked at again later.
bool Audit::correct_blocks(Actor&) {
  const std::uint64_t epoch = clients_.attach_count();
  std::unordered_map<std::uint32_t, std::uint32_t> before;
  for_each_object(
      [&](ObjectIndex index) { before[raw(index)] = memory_.objects().at(index).blocks.load(); });
  std::unordered_map<std::uint32_t, std::uint32_t> found;
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
    memory_.pool(static_cast<TierId>(tier)).for_each_bucket([&](BucketIndex bucket) {
      const BlockDescriptor& block = memory_.block(bucket);
      const ObjectIndex object = block.object_index();
      if (object == ObjectIndex::kNone) return;
      if (memory_.directory().find(object, block.block_number()) == bucket) ++found[raw(object)];
    });
  }
  bool is_right = false;
  const bool was_nobody = clients_.if_nobody(epoch, [&] {
    const Stillness still = hold_still_();
    if (!still || has_dirty_pages() || !is_quiet_()) return;
    is_right = true;
    memory_.flusher_board().dirty_bytes.store(0);
    memory_.service_board().openings.store(0);
    for (const auto& [index, count] : before) {
      Object& object = memory_.objects().at(static_cast<ObjectIndex>(index));
      object.dirty_blocks.store(0);
      std::uint32_t seen = count;
      const auto counted = found.find(index);
      const std::uint32_t blocks = counted == found.end() ? 0 : counted->second;
      is_right = object.blocks.compare_exchange_strong(seen, blocks) && is_right;
    }
  });
  return was_nobody && is_right;
}

}  // namespace cairn::node
