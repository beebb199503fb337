// SPDX-License-Identifier: Apache-2.0
//
// cairn_fault_worker DIR WORKER FIRST_VERSION SEED: writes self-describing records until killed.
//
// Every record names its writer, file, slot and version and carries a checksum. After a write has
// returned, the worker says so on its standard output, which is how kill_clients.py knows
// what must be found. Files: own (slots, overwritten), shared (the worker's slots lie between the
// others'), log (O_APPEND by all), stream (stdio, acknowledged after fflush).
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <string>

namespace {

constexpr uint32_t kMagic = 0xCA1712EC;
constexpr int kWorkersMax = 8;
constexpr int kSlots = 40;
// Not a divisor of pages or blocks: records straddle both.
constexpr size_t kRecordBytes = 3000;
constexpr size_t kLogRecordBytes = 200;

enum File : uint32_t { kOwn = 0, kShared = 1, kLog = 2, kStream = 3 };

struct Header {
  uint32_t magic;
  uint32_t worker;
  uint32_t file;
  uint32_t slot;
  uint64_t version;
  uint32_t bytes;     // of the whole record
  uint32_t checksum;  // CRC-32 of the whole record with this field zero
};
static_assert(sizeof(Header) == 32);

struct Acknowledgement {
  uint32_t file;
  uint32_t slot;
  uint64_t version;
};

uint32_t crc32(const unsigned char* bytes, size_t size) {
  static const auto table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320U : 0);
      entries[i] = value;
    }
    return entries;
  }();
  uint32_t value = ~0U;
  for (size_t i = 0; i < size; ++i) value = (value >> 8) ^ table[(value ^ bytes[i]) & 0xFF];
  return ~value;
}

class Worker {
 public:
  Worker(const std::string& directory, uint32_t worker, uint64_t version, uint64_t seed)
      : worker_(worker), version_(version), state_(seed * 2 + 1) {
    own_ = open_file(directory + "/own" + std::to_string(worker), O_RDWR);
    shared_ = open_file(directory + "/shared", O_RDWR);
    log_ = open_file(directory + "/log", O_WRONLY | O_APPEND);
    stream_ = fopen((directory + "/stream" + std::to_string(worker)).c_str(), "a");
  }

  void run() {
    for (;;) {
      const auto file = static_cast<uint32_t>(random() % 4);
      const auto slot = static_cast<uint32_t>(random() % kSlots);
      const uint64_t version = ++version_;
      announce(file, slot, version | uint64_t{1} << 63);  // about to be written
      write_record(file, slot, version);
      announce(file, slot, version);
      if (random() % 300 == 0) fdatasync(own_);
      if (random() % 100 == 0) reopen();
    }
  }

 private:
  static int open_file(const std::string& path, int flags) {
    const int fd = open(path.c_str(), flags | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) exit(3);
    return fd;
  }

  void reopen() {
    const std::string self = "/proc/self/fd/" + std::to_string(own_);
    const int again = open(self.c_str(), O_RDWR | O_CLOEXEC);
    if (again >= 0) {
      close(own_);
      own_ = again;
    }
  }

  uint64_t random() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

  void make_record(uint32_t file, uint32_t slot, uint64_t version, size_t bytes) {
    Header header = {kMagic, worker_, file, slot, version, static_cast<uint32_t>(bytes), 0};
    memcpy(record_, &header, sizeof header);
    for (size_t at = sizeof header; at < bytes; ++at)
      record_[at] = static_cast<unsigned char>(version * 31 + at * 7 + worker_);
    header.checksum = crc32(record_, bytes);
    memcpy(record_, &header, sizeof header);
  }

  void write_record(uint32_t file, uint32_t slot, uint64_t version) {
    const bool appends = file == kLog || file == kStream;
    const size_t bytes = appends ? kLogRecordBytes : kRecordBytes;
    make_record(file, slot, version, bytes);
    bool fine = false;
    if (file == kOwn) {
      fine = pwrite(own_, record_, bytes, slot * kRecordBytes) == static_cast<ssize_t>(bytes);
    } else if (file == kShared) {
      const size_t place = slot * kWorkersMax + worker_;
      fine = pwrite(shared_, record_, bytes, place * kRecordBytes) == static_cast<ssize_t>(bytes);
    } else if (file == kLog) {
      fine = write(log_, record_, bytes) == static_cast<ssize_t>(bytes);
    } else {
      fine = fwrite(record_, bytes, 1, stream_) == 1 && fflush(stream_) == 0;
    }
    if (!fine) exit(4);
  }

  static void announce(uint32_t file, uint32_t slot, uint64_t version) {
    const Acknowledgement acknowledgement = {file, slot, version};
    if (write(1, &acknowledgement, sizeof acknowledgement) != sizeof acknowledgement) exit(5);
  }

  uint32_t worker_;
  uint64_t version_;
  uint64_t state_;
  int own_ = -1, shared_ = -1, log_ = -1;
  FILE* stream_ = nullptr;
  unsigned char record_[kRecordBytes] = {};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: cairn_fault_worker DIR WORKER FIRST_VERSION SEED\n");
    return 2;
  }
  Worker worker(argv[1], static_cast<uint32_t>(atoi(argv[2])), strtoull(argv[3], nullptr, 10),
                strtoull(argv[4], nullptr, 10));
  worker.run();
}
