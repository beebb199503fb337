// SPDX-License-Identifier: Apache-2.0
#include "service/durability/node_durability.h"

#include <errno.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "service/process/log.h"

namespace cairn::node {

void NodeDurability::start(const NodeConfig& config) {
  CAIRN_CHECK(worker_ == nullptr);
  storing_.start();
  if (!log_.is_open()) return;
  log_.names().use_store_sync([this](StoreId store) {
    return -files_.unsynced().sync_store(static_cast<dev_t>(raw(store)));
  });
  retirement_ = std::make_unique<Retirement>(
      RetirementParts{memory_, log_.files(), log_.names(), files_, flusher_, counts_});
  retirement_->start();
  const DurabilityParts parts{memory_,  log_.files(), log_.names(), files_,
                              flusher_, storing_,     *retirement_, counts_};
  worker_ = std::make_unique<DurabilityWorker>(parts);
  worker_->start("cairn-durable");
  name_worker_ = std::make_unique<DurabilityWorker>(parts);
  name_worker_->start("cairn-names");
  keeper_ = std::make_unique<DirtyKeeper>(memory_, log_.files(), files_);
  if (config.checkpoint_seconds == 0) return;
  checkpoints_ = std::make_unique<Checkpoints>(
      CheckpointParts{memory_, log_.files(), files_, flusher_, counts_});
  checkpoints_->start(std::chrono::seconds(config.checkpoint_seconds));
}

void NodeDurability::inherit() {
  if (!log_.is_open()) return;
  log_.names().inherit();
  const ObjectTable& objects = memory_.objects();
  for (std::uint32_t number = 1; number < objects.used(); ++number) {
    const auto object = static_cast<ObjectIndex>(number);
    if (objects.at(object).has(kObjectLive)) log_.files().inherit(object);
  }
}

bool NodeDurability::finish() {
  const int error = retire_all(0);
  if (error != 0) {
    log::error("the durable log keeps what could not be made durable in the store: {}",
               std::strerror(-error));
    return false;
  }
  // This node knows nothing of files that recovery has kept; and a store may be out of reach.
  const std::uint64_t left = log_.is_open() ? log_.log().figures().objects : 0;
  if (left == 0) return true;
  log::warn(
      "the durable log still has something of {} files and directories, for the next recovery",
      left);
  return false;
}

void NodeDurability::stop() {
  if (checkpoints_ != nullptr) checkpoints_->stop();
  if (keeper_ != nullptr) keeper_->stop();
  if (worker_ != nullptr) worker_->stop();
  if (name_worker_ != nullptr) name_worker_->stop();
  if (retirement_ != nullptr) retirement_->stop();
  storing_.stop();
}

// A service whose log is gone since the object was opened stores as well.
void NodeDurability::make_durable(Asker asker, ObjectIndex object) {
  if (worker_ != nullptr) return worker_->submit(std::move(asker), object);
  storing_.submit(std::move(asker), [this, object] { return flusher_.flush_now(object, true); });
}

void NodeDurability::note_descriptor(ObjectIndex object) {
  if (!log_.is_open()) return;
  if (const StoreFilePtr file = files_.find(object); file != nullptr)
    log_.files().note_store(object, file->fd.get());
}

void NodeDurability::note_cut(Asker asker, ObjectIndex object, std::uint64_t size) {
  if (worker_ != nullptr) return worker_->submit_cut(std::move(asker), object, size);
  asker.answer(0);
}

void NodeDurability::note_renamed(ObjectIndex object) {
  if (worker_ == nullptr) return;
  const StoreFilePtr file = files_.find(object);
  if (file != nullptr) log_.files().log_renamed(object, path_of_descriptor(file->fd.get()));
}

void NodeDurability::make_names_durable(Asker asker, UniqueFd directory, bool in_store) {
  if (name_worker_ != nullptr)
    return name_worker_->submit_names(std::move(asker), std::move(directory), in_store);
  const auto shared = std::make_shared<const UniqueFd>(std::move(directory));
  storing_.submit(std::move(asker), [shared] { return ::fsync(shared->get()) == 0 ? 0 : -errno; });
}

void NodeDurability::note_removed(ObjectIndex object) {
  if (worker_ != nullptr) (void)log_.files().log_removed(object);
}

int NodeDurability::retire_all(std::uint64_t device) {
  return retirement_ == nullptr ? 0 : retirement_->retire_all(device);
}

void NodeDurability::begin_keeping() {
  CAIRN_CHECK(keeper_ != nullptr);
  log_.files().log_before_storing();
  keeper_->begin();
}

std::optional<DirtyLogging> NodeDurability::keep_dirty(std::chrono::milliseconds patience) {
  CAIRN_CHECK(keeper_ != nullptr);
  return keeper_->round(patience);
}

DurabilityFigures NodeDurability::figures() const {
  DurabilityFigures figures;
  figures.counts = &counts_;
  figures.has_log = log_.is_open();
  if (!figures.has_log) return figures;
  figures.log = log_.log().figures();
  figures.files = log_.files().all().size();
  if (const Status health = log_.log().health(); !health) figures.trouble = health.message();
  if (const std::int64_t at = counts_.checkpoint_ns.load(); at != 0)
    figures.checkpoint_age_seconds = static_cast<double>(monotonic_ns() - at) / 1e9;
  return figures;
}

}  // namespace cairn::node
