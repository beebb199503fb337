// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/descriptor_table.h"

#include "base/check.h"
#include "frontends/client/process_page.h"

namespace cairn {

constinit OpenFile* DescriptorTable::entries_[kDescriptorsMax] = {};
constinit std::atomic<int> DescriptorTable::highest_{-1};
constinit std::atomic<int> DescriptorTable::count_{0};
constinit int DescriptorTable::limit_ = DescriptorTable::kDescriptorsMax;

namespace {

// Other fork handlers of the process may open and close files in the thread that forks.
constinit thread_local bool has_frozen = false;

class ChangeGuard {
 public:
  ChangeGuard() : locks_(!has_frozen) {
    if (locks_) process_lock(ProcessLock::kDescriptors).lock();
  }
  ~ChangeGuard() {
    if (locks_) process_lock(ProcessLock::kDescriptors).unlock();
  }
  ChangeGuard(const ChangeGuard&) = delete;
  ChangeGuard& operator=(const ChangeGuard&) = delete;

 private:
  const bool locks_;
};

}  // namespace

void DescriptorTable::freeze() {
  process_lock(ProcessLock::kDescriptors).lock();
  has_frozen = true;
}

void DescriptorTable::thaw() {
  CAIRN_DCHECK(has_frozen);
  has_frozen = false;
  process_lock(ProcessLock::kDescriptors).unlock();
}

void DescriptorTable::begin_child() { has_frozen = false; }

OpenFile* DescriptorTable::set(int fd, OpenFile* file) {
  CAIRN_DCHECK(fd >= 0 && fd < kDescriptorsMax && file != nullptr);
  int seen = highest_.load(std::memory_order_relaxed);
  while (seen < fd && !highest_.compare_exchange_weak(seen, fd)) {
  }
  const ChangeGuard guard;
  OpenFile* displaced = entry(fd).exchange(file, std::memory_order_acq_rel);
  if (displaced == nullptr) count_.fetch_add(1, std::memory_order_relaxed);
  return displaced;
}

OpenFile* DescriptorTable::take(int fd) {
  if (static_cast<unsigned>(fd) >= static_cast<unsigned>(kDescriptorsMax)) return nullptr;
  if (entry(fd).load(std::memory_order_relaxed) == nullptr) return nullptr;
  const ChangeGuard guard;
  OpenFile* file = entry(fd).exchange(nullptr, std::memory_order_acq_rel);
  if (file != nullptr) count_.fetch_sub(1, std::memory_order_relaxed);
  CAIRN_DCHECK(fd <= highest());
  return file;
}

}  // namespace cairn
