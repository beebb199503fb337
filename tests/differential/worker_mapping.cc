// SPDX-License-Identifier: Apache-2.0
// Memory mappings. Touching a page past the end of the file raises SIGBUS natively, and must under
// Cairn: the handler turns it into a line of the log.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "worker.h"

namespace cairn::differential {
namespace {

thread_local sigjmp_buf bus_return;
thread_local volatile sig_atomic_t bus_expected = 0;

void on_bus(int signal_number) {
  if (bus_expected == 0) {
    signal(signal_number, SIG_DFL);
    return;
  }
  siglongjmp(bus_return, 1);
}

void unmap(Mapping& mapping, Text& text) {
  text.result(munmap(mapping.address, mapping.length));
  mapping = Mapping{};
}

void run_map(Worker& worker, const Operation& op, Text& text) {
  static constexpr int kProtections[] = {PROT_READ, PROT_READ | PROT_WRITE};
  Mapping& mapping = worker.mappings[static_cast<std::size_t>(op.a)];
  const auto slot_index = static_cast<std::size_t>(op.d % kSlots);
  const Slot& slot = worker.slots[slot_index];
  if (slot.fd < 0) {
    text.add(" skip");
    return;
  }
  if (mapping.address != nullptr) unmap(mapping, text);
  const int protection = kProtections[op.seed & 1];
  const int flags = op.seed % 5 < 3 ? MAP_SHARED : MAP_PRIVATE;
  const std::int64_t offset = op.b & ~4095LL;
  const auto length = static_cast<std::size_t>(op.seed % 41 == 0 ? 0 : op.c + 1);
  void* address = mmap(nullptr, length, protection, flags, slot.fd, offset);
  const bool mapped = address != MAP_FAILED;
  text.add("(%lld,%zu,%d,%d,%lld,%zu)", static_cast<long long>(op.a), slot_index, protection, flags,
           static_cast<long long>(offset), length);
  text.result(mapped ? 0 : -1);
  if (!mapped) return;
  mapping.address = static_cast<char*>(address);
  mapping.length = length;
  mapping.offset = offset;
  mapping.shared = flags == MAP_SHARED;
  mapping.writable = (protection & PROT_WRITE) != 0;
  mapping.slot = slot_index;
  mapping.description = slot.description;
  struct stat stat;
  Shared& shared = *worker.shared;
  if (mapping.shared && mapping.writable && fstat(slot.fd, &stat) == 0 &&
      shared.loose_count < shared.loose_inodes.size())
    shared.loose_inodes[shared.loose_count++] = stat.st_ino;
}

// Bytes from `at` that may be written: never past the end of the file, where the rest of the last
// page has no defined fate. 0 when the descriptor is gone and the size unknown.
std::int64_t writable_bytes(const Worker& worker, const Mapping& mapping, std::int64_t at) {
  const Slot& slot = worker.slots[mapping.slot];
  struct stat stat;
  if (slot.fd < 0 || slot.description != mapping.description || fstat(slot.fd, &stat) != 0)
    return 0;
  return std::max<std::int64_t>(0, stat.st_size - mapping.offset - at);
}

// Copies the write buffer into a mapping; false when the kernel refused a page.
bool store(char* to, std::int64_t length) {
  bus_expected = 1;
  const bool fine = sigsetjmp(bus_return, 1) == 0;
  if (fine) memcpy(to, write_buffer(), static_cast<std::size_t>(length));
  bus_expected = 0;
  return fine;
}

void run_map_write(Worker& worker, Mapping& mapping, const Operation& op, Text& text) {
  const std::int64_t at = op.b % static_cast<std::int64_t>(mapping.length);
  const std::int64_t mapped = static_cast<std::int64_t>(mapping.length) - at;
  const std::int64_t length = std::min({op.c, mapped, writable_bytes(worker, mapping, at)});
  if (!mapping.writable || length <= 0) {
    text.add(" skip");
    return;
  }
  fill_pattern(write_buffer(), length, op.seed);
  text.add("(%lld,%lld,%lld)", static_cast<long long>(op.a), static_cast<long long>(at),
           static_cast<long long>(length));
  if (!store(mapping.address + at, length)) text.add(" SIGBUS");
  // Stores through the mapping must be visible to pread at once.
  const Slot& slot = worker.slots[mapping.slot];
  if (mapping.shared && slot.description->access != O_WRONLY && !slot.description->direct) {
    const ssize_t got =
        pread(slot.fd, read_buffer(), static_cast<std::size_t>(length), mapping.offset + at);
    const bool same = got == length &&
                      memcmp(read_buffer(), write_buffer(), static_cast<std::size_t>(length)) == 0;
    text.add(same ? " seen" : " UNSEEN");
  }
}

void run_map_read(const Mapping& mapping, const Operation& op, Text& text) {
  const std::int64_t at = op.b % static_cast<std::int64_t>(mapping.length);
  const std::int64_t length =
      std::min<std::int64_t>(op.c, static_cast<std::int64_t>(mapping.length) - at);
  text.add("(%lld,%lld,%lld)", static_cast<long long>(op.a), static_cast<long long>(at),
           static_cast<long long>(length));
  // volatile: the value must survive the jump back from the handler.
  volatile std::int64_t done = 0;
  volatile std::uint64_t hash = 0;
  bus_expected = 1;
  if (sigsetjmp(bus_return, 1) == 0) {
    while (done < length) {
      const std::int64_t piece = std::min<std::int64_t>(4096, length - done);
      hash = hash_bytes(mapping.address + at + done, piece, hash);
      done = done + piece;
    }
  } else {
    text.add(" SIGBUS at %lld", static_cast<long long>(done));
  }
  bus_expected = 0;
  text.add(" %016llx", static_cast<unsigned long long>(hash));
}

}  // namespace

void install_bus_handler() {
  struct sigaction action = {};
  action.sa_handler = on_bus;
  sigaction(SIGBUS, &action, nullptr);
}

void run_mapping(Worker& worker, const Operation& op, Text& text) {
  if (op.kind == Kind::map) return run_map(worker, op, text);
  Mapping& mapping = worker.mappings[static_cast<std::size_t>(op.a)];
  if (mapping.address == nullptr) {
    text.add(" skip");
    return;
  }
  if (op.kind == Kind::unmap) {
    text.add("(%lld)", static_cast<long long>(op.a));
    unmap(mapping, text);
  } else if (op.kind == Kind::map_read) {
    run_map_read(mapping, op, text);
  } else if (op.kind == Kind::map_write) {
    run_map_write(worker, mapping, op, text);
  } else {
    text.add("(%lld)", static_cast<long long>(op.a));
    text.result(msync(mapping.address, mapping.length, op.seed & 1 ? MS_SYNC : MS_ASYNC));
  }
}

}  // namespace cairn::differential
