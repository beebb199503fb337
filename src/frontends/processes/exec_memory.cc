// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/exec_memory.h"

#include <errno.h>
#include <sys/mman.h>

#include <atomic>

#include "base/check.h"
#include "base/system_call.h"

namespace cairn {

constinit ExecMemory::Block ExecMemory::blocks_[kBlocks] = {};

namespace {

std::byte* map(std::size_t size) {
  void* memory =
      sys::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return sys::is_error(memory) ? nullptr : static_cast<std::byte*>(memory);
}

void unmap(std::byte* memory, std::size_t size) {
  if (memory != nullptr) sys::munmap(memory, size);
}

// In the copy of the table that a fork made there are children of the parent's.
bool is_of_nobody(std::int32_t user) { return user == 0 || sys::call(SYS_kill, user, 0) == -ESRCH; }

}  // namespace

ExecMemory::Block* ExecMemory::claim() {
  const std::int32_t self = sys::getpid();
  for (Block& block : blocks_) {
    const std::atomic_ref<std::int32_t> user(block.user);
    std::int32_t seen = user.load(std::memory_order_relaxed);
    if (is_of_nobody(seen) && user.compare_exchange_strong(seen, self)) return &block;
  }
  return nullptr;
}

ExecMemory::ExecMemory(std::size_t size, bool is_child) : size_(size) {
  if (!is_child) {
    begin_ = map(size);
    return;
  }
  block_ = claim();
  if (block_ == nullptr) return;
  sys::call(SYS_set_tid_address, sys::word(&block_->user));
  if (block_->size < size) {
    unmap(block_->memory, block_->size);
    block_->memory = map(size);
    block_->size = block_->memory != nullptr ? size : 0;
  }
  begin_ = block_->memory;
}

ExecMemory::~ExecMemory() {
  if (block_ == nullptr) {
    unmap(begin_, size_);
    return;
  }
  CAIRN_DCHECK(block_->user == sys::getpid());
  sys::call(SYS_set_tid_address, 0);
  std::atomic_ref<std::int32_t>(block_->user).store(0, std::memory_order_release);
}

}  // namespace cairn
