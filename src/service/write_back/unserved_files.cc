// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/unserved_files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "base/check.h"
#include "base/clock.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/catalog/record_cursor.h"
#include "service/write_back/service_opens.h"

namespace cairn::node {

UnservedFiles::UnservedFiles(const NodeMemory& memory, Flusher& flusher, Owner self,
                             KeptMemory& kept)
    : memory_(memory), flusher_(flusher), self_(self), rows_(kept.take<Row>(kRows)) {
  ledgers_.try_emplace(kOfNode);
}

LedgerId UnservedFiles::adopt() {
  const std::lock_guard lock(mutex_);
  std::uint32_t keys = 0;
  for (std::size_t number = 0; number < rows_.size(); ++number) {
    const Row& row = rows_[number];
    if (!row.is_used) continue;
    const auto [found, is_new] = ledgers_.try_emplace(row.ledger);
    if (is_new) {
      // Its connection has closed. Its holder's end is noticed, or was before.
      found->second.holder = row.holder;
      found->second.is_closed = true;
    }
    found->second.files[row.key] = row.object;
    row_numbers_[{row.ledger, row.key}] = number;
    if (row.object == ObjectIndex::kNone) ++keys;
  }
  for (auto& [id, ledger] : ledgers_)
    ledger.is_left = id != kOfNode && ::kill(ledger.holder, 0) != 0 && errno == ESRCH;
  memory_.unserved_board().keys.store(keys, std::memory_order_seq_cst);
  return ledgers_.rbegin()->first;
}

UnservedFiles::Row* UnservedFiles::row_of(LedgerId ledger, const ObjectKey& key) {
  const auto found = row_numbers_.find({ledger, key});
  return found == row_numbers_.end() ? nullptr : &rows_[found->second];
}

void UnservedFiles::write_down(LedgerId ledger, const ObjectKey& key, ObjectIndex object) {
  Ledger& of = ledgers_.at(ledger);
  of.files[key] = object;
  Row* row = row_of(ledger, key);
  if (row == nullptr) {
    const auto free = std::find_if(rows_.begin() + first_free_row_, rows_.end(),
                                   [](const Row& each) { return !each.is_used; });
    if (free == rows_.end()) return;
    first_free_row_ = free - rows_.begin() + 1;
    row = &*free;
    row_numbers_[{ledger, key}] = static_cast<std::size_t>(free - rows_.begin());
    *row = Row{false, of.holder, ledger, key, object};
    std::atomic_signal_fence(std::memory_order_seq_cst);  // what a death leaves is in this order
    row->is_used = true;
  }
  row->object = object;
}

void UnservedFiles::strike_out(LedgerId ledger, const ObjectKey& key) {
  ledgers_.at(ledger).files.erase(key);
  Row* row = row_of(ledger, key);
  if (row == nullptr) return;
  row->is_used = false;
  first_free_row_ = std::min(first_free_row_, row - rows_.data());
  row_numbers_.erase({ledger, key});
}

Actor UnservedFiles::make_actor() const {
  Actor actor;
  actor.memory = &memory_;
  actor.self = self_;
  actor.counters = &memory_.slot(self_.slot()).shards[0];
  return actor;
}

void UnservedFiles::begin(LedgerId ledger, pid_t holder) {
  CAIRN_CHECK(ledger != kOfNode);
  const std::lock_guard lock(mutex_);
  ledgers_[ledger].holder = holder;
}

bool UnservedFiles::hung_up(LedgerId ledger) {
  const std::lock_guard lock(mutex_);
  const auto found = ledgers_.find(ledger);
  if (found == ledgers_.end()) return false;
  found->second.is_closed = true;
  return found->second.is_over();
}

bool UnservedFiles::taken_over(LedgerId ledger, pid_t by) {
  const std::lock_guard lock(mutex_);
  const auto found = ledgers_.find(ledger);
  // A child's new image speaks for itself alone.
  if (found == ledgers_.end() || found->second.holder != by) return false;
  found->second.is_left = true;
  return found->second.is_over();
}

bool UnservedFiles::holder_ended(pid_t holder) {
  const std::lock_guard lock(mutex_);
  bool any_over = false;
  for (auto& [id, ledger] : ledgers_) {
    if (ledger.holder != holder) continue;
    ledger.is_left = true;
    any_over = any_over || ledger.is_over();
  }
  return any_over;
}

int UnservedFiles::request_flush(ObjectIndex object, bool durable) {
  return flusher_.flush_now(object, durable);
}

int UnservedFiles::enter(int fd, const StoreStatus& status, ObjectIndex* object) {
  Actor actor = make_actor();
  // For reading only, whatever it is: what is dirty is stored through the descriptor that its
  // writer handed over. This one may append.
  PosixBacking file(fd, O_RDONLY);
  *object = ObjectIndex::kNone;
  const ObjectIndex index = open_for_service(actor, file, status, this);
  if (index == ObjectIndex::kNone) return -ENFILE;
  const ObjectAccess access{actor, index, file, *this};
  const bool is_owed = access.object().is_in_trouble(kOwedByLog);
  const int error = is_owed ? -EIO : enter_through(access);
  (void)close_for_service(access);
  actor.drop_leases();
  if (error == 0) *object = index;
  return error;
}

int UnservedFiles::keep(LedgerId ledger, const UniqueFd& fd, UnservedReason why) {
  StoreStatus status;
  if (const int error = store_status(fd.get(), &status); error < 0) return error;
  if (!S_ISREG(status.mode)) return -EINVAL;
  const std::shared_lock still(still_);
  {
    const std::lock_guard lock(mutex_);
    const auto found = ledgers_.find(ledger);
    if (found == ledgers_.end()) return -ENOTCONN;
    const bool is_kept =
        found->second.files.contains(status.key) || ledgers_.at(kOfNode).files.contains(status.key);
    if (is_kept) return 0;
    ++counts_[std::min(static_cast<std::size_t>(why), counts_.size() - 1)];
  }
  ObjectIndex object = ObjectIndex::kNone;
  int error = enter(fd.get(), status, &object);
  if (error == -ENFILE) {
    note_key(ledger, status.key);
    error = enter(fd.get(), status, &object);
    if (error == -ENFILE) return 0;
  }
  return settle(ledger, status.key, object, error);
}

// From here on a new object of this key is met.
void UnservedFiles::note_key(LedgerId ledger, const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = ledgers_.find(ledger);
  if (found == ledgers_.end() || found->second.files.contains(key)) return;
  write_down(ledger, key, ObjectIndex::kNone);
  memory_.unserved_board().keys.fetch_add(1, std::memory_order_seq_cst);
}

// Writes down what enter() came to, for `object` or, with `error`, for nothing.
int UnservedFiles::settle(LedgerId ledger, const ObjectKey& key, ObjectIndex object, int error) {
  CAIRN_CHECK((error == 0) == (object != ObjectIndex::kNone));
  bool is_known = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = ledgers_.find(ledger);
    if (found == ledgers_.end()) {
      if (error == 0) error = -ENOTCONN;
    } else {
      const auto entry = found->second.files.find(key);
      const bool is_new = entry == found->second.files.end();
      // The process that made the object meanwhile has met the key: it is in through mode twice.
      is_known = !is_new && entry->second != ObjectIndex::kNone;
      if (!is_new && !is_known) memory_.unserved_board().keys.fetch_sub(1);
      if (error == 0 && !is_known) {
        write_down(ledger, key, object);
        return 0;
      }
      if (!is_known) strike_out(ledger, key);
    }
  }
  if (object != ObjectIndex::kNone) leave(object);
  return is_known ? 0 : error;
}

int UnservedFiles::move_offset_to_kernel(const UniqueFd& fd, DescriptionIndex index,
                                         std::uint32_t generation) {
  const DescriptionTable& descriptions = memory_.descriptions();
  if (raw(index) >= descriptions.capacity()) return -EINVAL;
  OpenDescription& description = descriptions.at(index);
  StoreStatus status;
  if (const int error = store_status(fd.get(), &status); error < 0) return error;
  const ObjectIndex object = memory_.objects().find(status.key);
  const bool is_its = description.generation.load(std::memory_order_acquire) == generation &&
                      object != ObjectIndex::kNone && description.object.load() == raw(object);
  if (!is_its) return -ESTALE;
  const int error = give_offset_to_kernel(make_actor(), description, fd.get());
  return error < 0 ? error : static_cast<int>(description.flags.load() & O_APPEND);
}

int UnservedFiles::meet(ObjectIndex index) {
  if (raw(index) == 0 || raw(index) >= memory_.objects().capacity()) return -EINVAL;
  const std::shared_lock still(still_);
  const std::lock_guard lock(mutex_);
  Object& object = memory_.objects().at(index);
  // In the through mode in which it began nothing of it can be dirty.
  if (!object.has(kObjectLive) || object.through.load() == 0) return -EINVAL;
  for (auto& [id, ledger] : ledgers_) {
    const auto found = ledger.files.find(object.key());
    if (found == ledger.files.end() || found->second != ObjectIndex::kNone) continue;
    object.through.fetch_add(1, std::memory_order_seq_cst);
    write_down(id, object.key(), index);
    memory_.unserved_board().keys.fetch_sub(1);
  }
  return 0;
}

int UnservedFiles::store_everything() {
  const ObjectTable& objects = memory_.objects();
  const std::uint32_t used = memory_.objects().used();
  // A process waits for the answer, so all descriptors together have that long to arrive, and the
  // last ones a moment of their own.
  constexpr std::int64_t kMomentNs = 20'000'000;
  const std::int64_t common_ns = monotonic_ns() + StoreWriter::kArrivalNs;
  int result = 0;
  for (std::uint32_t index = 1; index < used; ++index) {
    const Object& object = objects.at(static_cast<ObjectIndex>(index));
    if (!object.has(kObjectLive) || object.has(kObjectUnlinked) ||
        object.dirty_blocks.load(std::memory_order_acquire) == 0 ||
        object.handling().mode == BufferingMode::kScratch) {
      continue;
    }
    const std::int64_t deadline_ns = std::max(common_ns, monotonic_ns() + kMomentNs);
    const int error = flusher_.flush_now(static_cast<ObjectIndex>(index), false, deadline_ns);
    if (result == 0) result = error;
  }
  return result;
}

// What the users of the kernel's have left others see who have the file open.
void UnservedFiles::leave(ObjectIndex object) const {
  CAIRN_CHECK(object != ObjectIndex::kNone);
  Actor actor = make_actor();
  abandon_through(actor, object);
}

void UnservedFiles::release_over() {
  const std::shared_lock still(still_);
  std::vector<ObjectIndex> left;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = ledgers_.begin(); entry != ledgers_.end();) {
      const auto next = std::next(entry);
      if (entry->second.is_over()) end_ledger(entry->first, &left);
      entry = next;
    }
  }
  for (const ObjectIndex object : left) leave(object);
}

void UnservedFiles::end_ledger(LedgerId id, std::vector<ObjectIndex>* left) {
  CAIRN_CHECK(id != kOfNode);
  const std::map<ObjectKey, ObjectIndex> files = ledgers_.at(id).files;
  for (const auto& [key, object] : files) {
    strike_out(id, key);
    if (object == ObjectIndex::kNone) {
      memory_.unserved_board().keys.fetch_sub(1);
    } else {
      left->push_back(object);
    }
  }
  ledgers_.erase(id);
}

std::unique_lock<std::shared_mutex> UnservedFiles::hold_still() {
  return std::unique_lock(still_, std::try_to_lock);
}

std::unordered_map<std::uint32_t, std::uint32_t> UnservedFiles::kept_objects() const {
  const std::lock_guard lock(mutex_);
  std::unordered_map<std::uint32_t, std::uint32_t> kept;
  for (const auto& [id, ledger] : ledgers_) {
    for (const auto& [key, object] : ledger.files) {
      if (object != ObjectIndex::kNone) ++kept[raw(object)];
    }
  }
  return kept;
}

std::size_t UnservedFiles::count() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [id, ledger] : ledgers_) count += ledger.files.size();
  return count;
}

UnservedFiles::Counts UnservedFiles::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

const char* text_of(UnservedReason reason) {
  switch (reason) {
    case UnservedReason::kNoSlot:
      return "all slots were taken (clients.max)";
    case UnservedReason::kNoMemory:
      return "no address space for the node's memory";
    case UnservedReason::kNoDescriptors:
      return "no room for descriptors";
    case UnservedReason::kNoNumbers:
      return "too few descriptors left in the node (RLIMIT_NOFILE)";
    case UnservedReason::kOtherVersion:
      return "another version of Cairn";
    case UnservedReason::kTableFull:
      return "a full table";
    case UnservedReason::kFailed:
      return "a failed check";
    case UnservedReason::kNone:
    case UnservedReason::kCount:
      break;
  }
  return "unknown";
}

}  // namespace cairn::node
