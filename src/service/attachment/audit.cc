// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/audit.h"

#include <fcntl.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/catalog/record_cursor.h"

namespace cairn::node {
namespace {

bool may_be_wrong(const Object& object) {
  return object.opens.load() != 0 || object.writers.load() != 0 || object.through.load() != 0 ||
         object.has(kObjectUnlinked);
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

// How often each description, or object, is held.
struct Audit::Holds {
  using Counts = std::unordered_map<std::uint32_t, std::uint32_t>;
  Counts of_description;
  Counts through;
  // By the descriptions that are held.
  Counts opens;
  Counts writers;

  static std::uint32_t in(const Counts& counts, std::uint32_t index) {
    const auto found = counts.find(index);
    return found == counts.end() ? 0 : found->second;
  }
};

Audit::Outcome Audit::run(Actor& actor, std::span<const Owner> replaced) {
  if (!correct_references(actor, replaced)) return Outcome::kLater;
  if (has_dirty_pages() || !is_quiet_() || !correct_blocks(replaced)) return Outcome::kLater;
  return Outcome::kDone;
}

Audit::Holds Audit::holds_of(std::span<const Owner> replaced) const {
  Holds held;
  if (replaced.empty()) return held;
  // There may be as many images as slots, and attaching programs wait for this.
  std::vector<std::uint32_t> images;
  for (const Owner owner : replaced) images.push_back(owner.bits());
  std::sort(images.begin(), images.end());
  const DescriptionTable& descriptions = memory_.descriptions();
  const std::uint32_t used = descriptions.used_holds();
  for (std::uint32_t index = 1; index < used; ++index) {
    const DescriptionTable::HoldView hold = descriptions.view(static_cast<HoldIndex>(index));
    const bool counts = hold.kind != HoldKind::kFree &&
                        std::binary_search(images.begin(), images.end(), hold.owner.bits());
    if (counts)
      ++(hold.kind == HoldKind::kThrough ? held.through : held.of_description)[hold.index];
  }
  return held;
}

// Openings of nobody, descriptions without a hold, and references to objects by nobody. Looked for
// first, corrected behind the gate.
bool Audit::correct_references(Actor& actor, std::span<const Owner> replaced) {
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
    if (may_be_wrong(memory_.objects().at(index))) objects.push_back(index);
  });
  bool was_still = false;
  const bool was_nobody = clients_.if_nobody(epoch, replaced.size(), [&] {
    const Stillness still = hold_still_();
    const Stillness ledger_still = unserved_.hold_still();
    if (!still || !ledger_still) return;
    was_still = true;
    // Processes without a slot are not attached, and may be alive.
    auto kept = unserved_.kept_objects();
    Holds held = holds_of(replaced);
    correct_openings(replaced);
    correct_descriptions(descriptions, &held);
    for (const ObjectIndex index : objects) correct_object(actor, index, kept[raw(index)], held);
  });
  return was_nobody && was_still;
}

// The threads of a replaced image ended with it: its slot must not be subtracted once more.
void Audit::correct_openings(std::span<const Owner> replaced) {
  for (const Owner image : replaced) memory_.slot(image.slot()).openings.store(0);
  memory_.service_board().openings.store(0);
}

void Audit::correct_descriptions(std::span<const DescriptionIndex> descriptions, Holds* held) {
  for (const DescriptionIndex index : descriptions) {
    OpenDescription& description = memory_.descriptions().at(index);
    const std::uint32_t holds = Holds::in(held->of_description, raw(index));
    description.references.store(holds);
    if (holds == 0) {
      memory_.descriptions().destroy(index);
      continue;
    }
    const std::uint32_t object = description.object.load();
    ++held->opens[object];
    if ((description.flags.load() & O_ACCMODE) != O_RDONLY) ++held->writers[object];
  }
}

// `kept`: how often the ledgers of the unserved have it in through mode.
void Audit::correct_object(Actor& actor, ObjectIndex index, std::uint32_t kept, const Holds& held) {
  Object& object = memory_.objects().at(index);
  // The rest speaks of processes that have ended, however large the number is; files that are kept
  // for good have no process that could give them back.
  const std::uint32_t mine = object.through.load() & ~kThroughAbandoned;
  const std::uint32_t for_good = mine / kThroughForGood * kThroughForGood;
  const std::uint32_t through = for_good + kept + Holds::in(held.through, raw(index));
  // A mark of abandoned use stays: programs that have the file open know an old size.
  if (mine > through) {
    object.through.store((object.through.load() & kThroughAbandoned) | (through + 1));
    abandon_through(actor, index);
  }
  object.writers.store(Holds::in(held.writers, raw(index)));
  const std::uint32_t opens = Holds::in(held.opens, raw(index));
  if (object.opens.load() > opens) {
    object.opens.store(opens + 1);
    abandon_object(actor, index, false);
  } else if (!object.has(kObjectHandedOver)) {
    // Kept at its removal for an opening that never was. The flusher drops those that it holds.
    (void)discard_abandoned(actor, index);
  }
  // Its last closer may have died before it looked at the mark.
  forget_abandoned_through(actor, index);
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
bool Audit::correct_blocks(std::span<const Owner> replaced) {
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
  const bool was_nobody = clients_.if_nobody(epoch, replaced.size(), [&] {
    const Stillness still = hold_still_();
    if (!still || has_dirty_pages() || !is_quiet_()) return;
    is_right = true;
    memory_.flusher_board().dirty_bytes.store(0);
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
