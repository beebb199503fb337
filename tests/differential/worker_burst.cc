// SPDX-License-Identifier: Apache-2.0
// All actors at once, without turns. The outcome is still determined: each actor has its own byte
// range of one shared file (the ranges meet inside blocks and pages), appended records are compared
// as a set, and so are records written through an offset that threads share.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "worker.h"

namespace cairn::differential {
namespace {

constexpr std::int64_t kRegionBytes = 100003;  // prime: no actor's range starts on a boundary
constexpr int kRecordBytes = 96;

// The record says who wrote it and proves that it is whole.
struct Record {
  std::uint64_t actor;
  std::uint64_t number;
  std::uint64_t filler[9];
  std::uint64_t hash;
};
static_assert(sizeof(Record) == kRecordBytes);

Record make_record(int actor, int number, std::uint64_t seed) {
  Record record = {};
  record.actor = static_cast<std::uint64_t>(actor);
  record.number = static_cast<std::uint64_t>(number);
  Random random(seed + static_cast<std::uint64_t>(actor) * 1000 +
                static_cast<std::uint64_t>(number));
  for (auto& word : record.filler) word = random.next();
  record.hash = hash_bytes(&record, sizeof record - 8);
  return record;
}

// Random writes and reads inside the actor's own range, checked against a private model.
std::uint64_t work_in_region(const Operation& op, int actor, const char* name, Text& text) {
  const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    text.result(-1);
    return 0;
  }
  const std::int64_t base = actor * kRegionBytes;
  std::vector<char> model(kRegionBytes);
  Random random(op.seed + static_cast<std::uint64_t>(actor));
  fill_pattern(model.data(), kRegionBytes, random.next());
  if (pwrite(fd, model.data(), model.size(), base) != kRegionBytes) text.add(" SHORT");
  const int steps = 20 + static_cast<int>(op.d % 60);
  for (int step = 0; step < steps; ++step) {
    const std::int64_t at = random.below(kRegionBytes);
    const std::int64_t length = std::min(random_length(random) % 30000, kRegionBytes - at);
    const auto size = static_cast<std::size_t>(length);
    if (random.one_in(2)) {
      fill_pattern(model.data() + at, length, random.next());
      if (pwrite(fd, model.data() + at, size, base + at) != length) text.add(" SHORT");
    } else {
      const ssize_t got = pread(fd, read_buffer(), size, base + at);
      if (got != length || memcmp(read_buffer(), model.data() + at, size) != 0)
        text.add(" actor %d MISMATCH at %lld+%lld got %lld", actor, (long long)(base + at),
                 (long long)length, (long long)got);
    }
    if (random.one_in(40)) fdatasync(fd);
  }
  close(fd);
  return hash_bytes(model.data(), kRegionBytes);
}

void append_records(const Operation& op, int actor, const char* name, Text& text) {
  const int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  for (int number = 0; number < 40; ++number) {
    const Record record = make_record(actor, number, op.seed);
    if (write(fd, &record, sizeof record) != kRecordBytes) text.add(" APPEND FAILED");
  }
  close(fd);
}

}  // namespace

// Phase 0 (a single actor): prepare. Phase 1: all at once. Phase 2 (a single actor): judge.
void run_burst(Worker& worker, const Operation& op, int actor, Text& text) {
  (void)worker;
  if (actor == -1) {
    const int fd = open("append", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    close(fd);
    return;
  }
  if (actor < kProcesses * kThreads) {
    const std::uint64_t hash = work_in_region(op, actor, "burst", text);
    append_records(op, actor, "append", text);
    text.add(" %016llx", static_cast<unsigned long long>(hash));
    return;
  }
  const int fd = open("append", O_RDONLY | O_CLOEXEC);
  Record record;
  std::uint64_t sum = 0;
  int count = 0;
  ssize_t got;
  while ((got = read(fd, &record, sizeof record)) == kRecordBytes) {
    if (record.hash != hash_bytes(&record, sizeof record - 8)) text.add(" TORN RECORD %d", count);
    sum += record.hash;
    ++count;
  }
  if (got != 0) text.add(" ODD TAIL %lld", static_cast<long long>(got));
  close(fd);
  unlink("append");  // the order of its records is not determined, so the trees must not hold it
  text.add(" records=%d sum=%016llx", count, static_cast<unsigned long long>(sum));
}

}  // namespace cairn::differential
