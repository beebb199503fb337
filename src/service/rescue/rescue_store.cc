// SPDX-License-Identifier: Apache-2.0
#include "service/rescue/rescue_store.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/flush/flush_object.h"

namespace cairn::node {
namespace {

// A store that takes less than this is taken for one that hangs.
constexpr unsigned kStepSeconds = 60;
constexpr std::uint64_t kSlowestBytesPerSecond = 1 << 20;

Actor actor_of(const NodeMemory& memory, Owner self) {
  Actor actor;
  actor.memory = &memory;
  actor.self = self;
  actor.counters = &memory.slot(self.slot()).shards[0];
  return actor;
}

bool has_no_name(const StoreFile& file) {
  StoreStatus status;
  return store_status(file.fd.get(), &status) == 0 && status.links == 0;
}

}  // namespace

void bound_step(std::uint64_t bytes) {
  const std::uint64_t most = kStepSeconds + bytes / kSlowestBytesPerSecond;
  ::alarm(static_cast<unsigned>(std::min<std::uint64_t>(most, UINT32_MAX)));
}

RescueStore::RescueStore(const NodeMemory& memory, StoreFiles& files, Owner self, KeptLife& life,
                         ObjectIndex fatal)
    : memory_(memory), files_(files), life_(life), fatal_(fatal), actor_(actor_of(memory, self)) {
  CAIRN_CHECK(static_cast<bool>(self));
}

// Scratch data has nowhere to be stored, and a deleted file nobody to miss it.
bool RescueStore::is_owed(ObjectIndex index) const {
  const Object& object = memory_.objects().at(index);
  if (!object.has(kObjectLive) || object.handling().mode == BufferingMode::kScratch) return false;
  return object.dirty_blocks.load() != 0 ||
         (object.has(kObjectTimesDirty) && !object.has(kObjectUnlinked));
}

void RescueStore::store_all() {
  unstored_.clear();
  const std::uint32_t used = std::min(memory_.objects().used(), memory_.objects().capacity());
  for (std::uint32_t number = 1; number < used; ++number) {
    const auto index = static_cast<ObjectIndex>(number);
    if (!is_owed(index)) continue;
    const StoreFilePtr file = files_.find(index);
    if (file == nullptr || index == fatal_) {
      // Times alone are not worth a place in the list.
      if (memory_.objects().at(index).dirty_blocks.load() != 0)
        unstored_.push_back({index, index == fatal_ ? EFAULT : 0});
      continue;
    }
    life_.rescue_object.store(number);
    life_.rescue_step.store(RescueStep::kStore);
    bound_step(std::uint64_t{memory_.objects().at(index).dirty_blocks.load()} * kBlockBytes);
    if (const int error = store(index, *file); error < 0) unstored_.push_back({index, -error});
    life_.rescue_step.store(RescueStep::kNone);
  }
  actor_.drop_leases();
}

int RescueStore::store(ObjectIndex index, StoreFile& file) {
  if (is_abandoned(memory_, index) && has_no_name(file) && discard_abandoned(actor_, index))
    return 0;
  CAIRN_CHECK(index == file.object);
  const FlushResult result = flush_object(actor_, FlushRequest(index, file.backing));
  stored_bytes_ += result.bytes;
  if (result.bytes != 0) file.sync_owed.store(true);
  int error = result.error;
  if (const int settled = settle_store(actor_, index, file.backing); error == 0) error = settled;
  if (error == 0 && result.has_found) ++stored_files_;
  if (error < 0) record_store_error(memory_.objects().at(index), -error);
  return error;
}

void RescueStore::note_sync(ObjectIndex index, int error) {
  const auto same = [index](const UnrescuedFile& file) { return file.object == index; };
  const auto found = std::find_if(unstored_.begin(), unstored_.end(), same);
  if (error != 0) redirty_object(actor_, index);
  if (found != unstored_.end())
    found->is_rest_durable = error == 0;
  else if (error != 0)
    unstored_.push_back({index, -error});
}

void RescueStore::make_durable() {
  for (const StoreFilePtr& file : files_.snapshot()) {
    if (file->object == fatal_) continue;
    if (!file->sync_owed.exchange(false)) {
      note_sync(file->object, 0);
      continue;
    }
    life_.rescue_object.store(raw(file->object));
    life_.rescue_step.store(RescueStep::kStore);
    bound_step(std::uint64_t{1} << 30);
    const int error = file->backing.sync(SyncDepth::kAll);
    life_.rescue_step.store(RescueStep::kNone);
    note_sync(file->object, error == -EINVAL ? 0 : error);
  }
}

}  // namespace cairn::node
