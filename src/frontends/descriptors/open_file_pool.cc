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
// Records side by side; in a mapped one they follow this.
struct Chunk {
  Chunk* older;
  OpenFile* begin;
  OpenFile* end;
};
constinit Chunk* newest = nullptr;
// Records of the newest chunk that were never used: nobody touches their pages before.
constinit OpenFile* unused = nullptr;
// The first records of a process: a short program makes no mapping for the others.
constexpr std::size_t kFirst = 8;
alignas(OpenFile) constinit unsigned char first_records[kFirst * sizeof(OpenFile)] = {};
constinit Chunk first_chunk{};

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

void begin_chunk(Chunk* chunk, void* records, std::size_t count) {
  auto* const begin = static_cast<OpenFile*>(records);
  *chunk = Chunk{newest, begin, begin + count};
  newest = chunk;
  unused = begin;
}

bool grow() {
  if (newest == nullptr) {
    begin_chunk(&first_chunk, first_records, kFirst);
    return true;
  }
  void* memory =
      sys::mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sys::is_error(memory)) return false;
  constexpr std::size_t kHead = (sizeof(Chunk) + sizeof(OpenFile) - 1) / sizeof(OpenFile);
  begin_chunk(static_cast<Chunk*>(memory), static_cast<OpenFile*>(memory) + kHead,
              kChunkBytes / sizeof(OpenFile) - kHead);
  return true;
}

// Null when the process has no memory left.
OpenFile* next_record() {
  if (resting.count > kRestingMax) return pop();
  if (resting.count > 0 && monotonic_coarse_ms() - resting.head->rests_since_ms > kRestMs)
    return pop();
  if ((newest != nullptr && unused != newest->end) || grow()) return unused++;
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

void OpenFilePool::for_each(void (*visit)(OpenFile& file)) {
  for (const Chunk* chunk = newest; chunk != nullptr; chunk = chunk->older) {
    const OpenFile* const end = chunk == newest ? unused : chunk->end;
    for (OpenFile* file = chunk->begin; file != end; ++file) visit(*file);
  }
}

void OpenFilePool::give_back(OpenFile* file) {
  CAIRN_DCHECK(file->count.is_none());
  LocalGuard guard(process_lock(ProcessLock::kOpenFiles));
  push(file);
}

}  // namespace cairn
