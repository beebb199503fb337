// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/open_file_pool.h"

#include <sys/mman.h>

#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/system_call.h"
#include "frontends/descriptors/open_file.h"

namespace cairn {
namespace {

constexpr std::size_t kChunkBytes = 64 * 1024;
// A record rests for this long before it is used again, unless so many rest already.
constexpr std::uint32_t kRestMs = 1000;
constexpr unsigned kRestingMax = 16 * 1024;

struct Queue {
  OpenFile* head;
  OpenFile* tail;
  unsigned count;
};
// All under ProcessLock::kOpenFiles.
constinit Queue resting{};
// Records of the newest chunk that were never used: nobody touches their pages before.
constinit OpenFile* unused = nullptr;
constinit OpenFile* unused_end = nullptr;
// The first records of a process: a short program makes no mapping for the others.
constexpr std::size_t kFirst = 8;
alignas(OpenFile) constinit unsigned char first_records[kFirst * sizeof(OpenFile)] = {};
constinit bool has_used_first = false;

void push(OpenFile* file) {
  file->next_free = nullptr;
  file->rests_since_ms = monotonic_coarse_ms();
  if (resting.tail != nullptr) {
    resting.tail->next_free = file;
  } else {
    resting.head = file;
  }
  resting.tail = file;
  ++resting.count;
}

// Requires: a record rests.
OpenFile* pop() {
  OpenFile* file = resting.head;
  CAIRN_DCHECK(file != nullptr && resting.count > 0);
  resting.head = file->next_free;
  if (resting.head == nullptr) resting.tail = nullptr;
  --resting.count;
  CAIRN_DCHECK((resting.head == nullptr) == (resting.count == 0));
  return file;
}

bool grow() {
  if (!has_used_first) {
    has_used_first = true;
    unused = reinterpret_cast<OpenFile*>(first_records);
    unused_end = unused + kFirst;
    return true;
  }
  void* memory =
      sys::mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sys::is_error(memory)) return false;
  unused = static_cast<OpenFile*>(memory);
  unused_end = unused + kChunkBytes / sizeof(OpenFile);
  return true;
}

// Null when the process has no memory left.
OpenFile* next_record() {
  if (resting.count > kRestingMax) return pop();
  if (resting.count > 0 && monotonic_coarse_ms() - resting.head->rests_since_ms > kRestMs)
    return pop();
  if (unused != unused_end || grow()) return unused++;
  return resting.count > 0 ? pop() : nullptr;
}

}  // namespace

OpenFile* OpenFilePool::take() {
  OpenFile* file = nullptr;
  {
    LocalGuard guard(process_lock(ProcessLock::kOpenFiles));
    file = next_record();
  }
  return file == nullptr ? nullptr : new (file) OpenFile();
}

void OpenFilePool::give_back(OpenFile* file) {
  CAIRN_DCHECK(file->count.is_none());
  LocalGuard guard(process_lock(ProcessLock::kOpenFiles));
  push(file);
}

}  // namespace cairn
