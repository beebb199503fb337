// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/open_file_pool.h"

#include <sys/mman.h>

#include <new>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/descriptors/open_file.h"

namespace cairn {
namespace {

constexpr std::size_t kChunkBytes = 64 * 1024;
// A record rests for this many others before it is used again.
constexpr unsigned kRestingMin = 64;
static_assert(kChunkBytes / sizeof(OpenFile) > kRestingMin, "one chunk more ends a shortage");

struct Queue {
  OpenFile* head;
  OpenFile* tail;
  unsigned count;
};
constinit Queue free_records{};

void push(OpenFile* file) {
  file->next_free = nullptr;
  if (free_records.tail != nullptr) {
    free_records.tail->next_free = file;
  } else {
    free_records.head = file;
  }
  free_records.tail = file;
  ++free_records.count;
}

bool grow() {
  void* memory =
      sys::mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sys::is_error(memory)) return false;
  auto* records = static_cast<OpenFile*>(memory);
  for (std::size_t index = 0; index < kChunkBytes / sizeof(OpenFile); ++index) {
    push(new (records + index) OpenFile());
  }
  return true;
}

}  // namespace

OpenFile* OpenFilePool::take() {
  OpenFile* file = nullptr;
  {
    LocalGuard guard(process_lock(ProcessLock::kOpenFiles));
    if (free_records.count <= kRestingMin && !grow() && free_records.count == 0) return nullptr;
    file = free_records.head;
    CAIRN_DCHECK(file != nullptr && free_records.count > 0);
    free_records.head = file->next_free;
    if (free_records.head == nullptr) free_records.tail = nullptr;
    --free_records.count;
    CAIRN_DCHECK((free_records.head == nullptr) == (free_records.count == 0));
  }
  return new (file) OpenFile();
}

void OpenFilePool::give_back(OpenFile* file) {
  CAIRN_DCHECK(file->descriptors.load(std::memory_order_relaxed) == 0);
  LocalGuard guard(process_lock(ProcessLock::kOpenFiles));
  push(file);
}

}  // namespace cairn
