// SPDX-License-Identifier: Apache-2.0
#include "service/rescue/rescue_store.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/flush/flush_object.h"
#include "service/process/log.h"

namespace cairn::node {
namespace {

// A store that takes less than this is taken for one that hangs.
constexpr unsigned kStepSeconds = 60;
constexpr std::uint64_t kSlowestBytesPerSecond = 1 << 20;
// What an fsync may have to wait for is not known.
constexpr std::uint64_t kSyncBytes = 1 << 30;

bool has_no_name(const StoreFile& file) {
  StoreStatus status;
  return store_status(file.fd.get(), &status) == 0 && status.links == 0;
}

// Without asking the store, which may hang: no step bounds the question.
bool is_known_to_have_no_name(const StoreFilePtr& file) {
  StoreStatus status;
  return file != nullptr && known_store_status(file->fd.get(), &status) == 0 && status.links == 0;
}

}  // namespace

void bound_step(std::uint64_t bytes) {
  const std::uint64_t most = kStepSeconds + bytes / kSlowestBytesPerSecond;
  ::alarm(static_cast<unsigned>(std::min<std::uint64_t>(most, UINT32_MAX)));
}

RescueStore::RescueStore(const NodeMemory& memory, StoreFiles& files, Owner self, KeptLife& life,
                         ObjectIndex fatal)
    : memory_(memory),
      files_(files),
      life_(life),
      fatal_(fatal),
      writer_(memory, files, self, FlushOptions(),
              [](const std::string& text) { log::warn("{}", text); }),
      actor_(writer_.make_actor(0)) {
  CAIRN_CHECK(static_cast<bool>(self));
}

void RescueStore::at_work_on(ObjectIndex index, std::uint64_t bytes,
                             const std::function<void()>& work) {
  CAIRN_CHECK(index != fatal_);
  life_.rescue_object.store(raw(index));
  life_.rescue_step.store(RescueStep::kStore);
  bound_step(bytes);
  work();
  life_.rescue_step.store(RescueStep::kNone);
}

// A deleted file has nobody to miss it.
bool RescueStore::is_in_trouble(ObjectIndex index) const {
  const Object& object = memory_.objects().at(index);
  const bool is_left = object.has(kObjectLive) && object.is_marked(kMarkKnownElsewhere) &&
                       !object.has(kObjectUnlinked);
  if (!is_left || object.handling().mode == BufferingMode::kScratch) return false;
  return object.is_in_trouble(kSyncUnderWay) || object.is_in_trouble(kBytesLost);
}

// The path of a closed file leads to it, and names it.
void RescueStore::adopt_if_in_trouble(const UniqueFd& readable) {
  StoreStatus status;
  if (known_store_status(readable.get(), &status) != 0) return;
  const ObjectIndex index = memory_.objects().find(status.key);
  if (index == ObjectIndex::kNone || index == fatal_ || !is_in_trouble(index)) return;
  at_work_on(index, 0, [&] { files_.adopt_stored(readable); });
}

void RescueStore::take_over(const std::vector<UniqueFd>& readable) {
  for (const UniqueFd& fd : readable) adopt_if_in_trouble(fd);
  for (const ObjectIndex index : in_trouble()) {
    Object& object = memory_.objects().at(index);
    if (!object.is_in_trouble(kSyncUnderWay)) continue;
    const auto settle = [&](bool is_whole) {
      if (!is_whole) object.note_trouble(kBytesLost, true);
      object.note_trouble(kSyncUnderWay, false);
    };
    // Dirty, it is saved.
    if (index == fatal_) {
      settle(writer_.redirty_in_tiers(index));
    } else {
      at_work_on(index, 0, [&] { settle(writer_.store_unheard(index)); });
    }
  }
}

std::vector<ObjectIndex> RescueStore::in_trouble() const {
  std::vector<ObjectIndex> all;
  const std::uint32_t used = std::min(memory_.objects().used(), memory_.objects().capacity());
  for (std::uint32_t number = 1; number < used; ++number) {
    const auto index = static_cast<ObjectIndex>(number);
    if (is_in_trouble(index)) all.push_back(index);
  }
  return all;
}

bool RescueStore::has_unheard() const {
  const std::vector<ObjectIndex> all = in_trouble();
  return std::any_of(all.begin(), all.end(), [&](ObjectIndex index) {
    return memory_.objects().at(index).is_in_trouble(kSyncUnderWay);
  });
}

std::vector<ObjectIndex> RescueStore::lost() const {
  std::vector<ObjectIndex> all = in_trouble();
  std::erase_if(all,
                [&](ObjectIndex index) { return is_known_to_have_no_name(files_.find(index)); });
  return all;
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
    const std::uint32_t blocks = memory_.objects().at(index).dirty_blocks.load();
    at_work_on(index, std::uint64_t{blocks} * kBlockBytes, [&] {
      if (const int error = store(index, *file); error < 0) unstored_.push_back({index, -error});
    });
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
    if (!file->sync_owed.load()) {
      note_sync(file->object, 0);
      continue;
    }
    // As the service does it: should this rescue die in it, the next one knows that it was under
    // way.
    int error = 0;
    at_work_on(file->object, kSyncBytes,
               [&] { error = files_.unsynced().sync_file(*file, SyncDepth::kAll); });
    note_sync(file->object, error == -EINVAL ? 0 : error);
  }
}

}  // namespace cairn::node
