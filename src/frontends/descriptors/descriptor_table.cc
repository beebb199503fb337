// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/descriptor_table.h"

#include "base/check.h"

namespace cairn {

constinit OpenFile* DescriptorTable::entries_[kDescriptorsMax] = {};
constinit std::atomic<int> DescriptorTable::highest_{-1};
constinit std::atomic<int> DescriptorTable::count_{0};
constinit int DescriptorTable::limit_ = DescriptorTable::kDescriptorsMax;

OpenFile* DescriptorTable::set(int fd, OpenFile* file) {
  CAIRN_DCHECK(fd >= 0 && fd < kDescriptorsMax && file != nullptr);
  int seen = highest_.load(std::memory_order_relaxed);
  while (seen < fd && !highest_.compare_exchange_weak(seen, fd)) {
  }
  OpenFile* displaced = entry(fd).exchange(file, std::memory_order_acq_rel);
  if (displaced == nullptr) count_.fetch_add(1, std::memory_order_relaxed);
  return displaced;
}

OpenFile* DescriptorTable::take(int fd) {
  if (static_cast<unsigned>(fd) >= static_cast<unsigned>(kDescriptorsMax)) return nullptr;
  if (entry(fd).load(std::memory_order_relaxed) == nullptr) return nullptr;
  OpenFile* file = entry(fd).exchange(nullptr, std::memory_order_acq_rel);
  if (file != nullptr) count_.fetch_sub(1, std::memory_order_relaxed);
  CAIRN_DCHECK(fd <= highest());
  return file;
}

}  // namespace cairn
